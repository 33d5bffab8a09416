//===- Profile.cpp - Times that a run measured ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/cost/Profile.h"

#include "runtime/program/ModelKey.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace chimera::cost {

using nlohmann::json;

namespace {

/// An error in a profile.
struct Fault {
  std::string text;
};

/// Member `name` of an object. Throws a Fault if there is no such member, or if
/// `isKind` is false for it.
const json &memberOf(const json &object, const char *name, const char *kind,
                     bool (json::*isKind)() const noexcept) {
  auto found = object.find(name);
  if (found == object.end() || !((*found).*isKind)())
    throw Fault{std::string("expected ") + kind + " \"" + name + "\""};
  return *found;
}

std::string textOf(const json &object, const char *name) {
  return memberOf(object, name, "a text", &json::is_string).get<std::string>();
}

int64_t countOf(const json &value, const char *name) {
  constexpr int64_t kMost = int64_t{1} << 60;
  // The JSON parser reads an integer of more than 64 bits as floating point.
  // Refuse it.
  if (!value.is_number_integer() || value.is_number_unsigned()
          ? !value.is_number_unsigned() || value.get<uint64_t>() >= kMost
          : value.get<int64_t>() < 0 || value.get<int64_t>() >= kMost)
    throw Fault{std::string("expected \"") + name +
                "\" to be a whole number of at least 0 and below 2^60"};
  return value.get<int64_t>();
}

/// The mean time of an action of a stage in ns. 0 if the stage ran no such
/// action.
int64_t meanOf(const json &stage, const char *action) {
  auto found = stage.find(action);
  if (found == stage.end())
    return 0;
  if (!found->is_object())
    throw Fault{std::string("expected \"") + action +
                "\" of a stage to be an object"};
  int64_t count = countOf(
      memberOf(*found, "count", "the number", &json::is_number), "count");
  int64_t total = countOf(
      memberOf(*found, "total", "the number", &json::is_number), "total");
  // A time is at least 1, because 0 would mean that the stage had no such
  // action.
  return count == 0 ? 0 : std::max<int64_t>(1, total / count);
}

MeasuredStage stageOf(const json &stage) {
  const json &layers = memberOf(stage, "layers", "the list", &json::is_array);
  if (layers.size() != 2)
    throw Fault{"expected \"layers\" to be two numbers"};
  MeasuredStage measured{};
  int64_t ends[2] = {countOf(layers[0], "layers"),
                     countOf(layers[1], "layers")};
  if (ends[0] >= ends[1] || ends[1] > INT32_MAX)
    throw Fault{"expected \"layers\" to be a range of layers"};
  measured.first = static_cast<int32_t>(ends[0]);
  measured.end = static_cast<int32_t>(ends[1]);
  measured.load = meanOf(stage, "load");
  measured.forward = meanOf(stage, "forward");
  measured.backward = meanOf(stage, "backward");
  measured.inputGradient = meanOf(stage, "input_gradient");
  measured.weightGradient = meanOf(stage, "weight_gradient");
  measured.recompute = meanOf(stage, "recompute");
  measured.update = meanOf(stage, "optimizer_step");
  bool hasBackward = measured.backward > 0 || (measured.inputGradient > 0 &&
                                               measured.weightGradient > 0);
  if (measured.forward == 0 || !hasBackward)
    throw Fault{"expected times of a forward and a backward for each stage"};
  return measured;
}

/// Reads threads and cores per rank. The cores are missing in older profiles,
/// and in profiles of ranks that do not compute on CPU cores.
void readCores(const json &document, Profile &profile) {
  if (auto threads = document.find("threads"); threads != document.end())
    profile.threads = countOf(*threads, "threads");
  auto cores = document.find("cores_per_rank");
  if (cores == document.end())
    return;
  if (!cores->is_number() || !(cores->get<double>() > 0))
    throw Fault{"expected \"cores_per_rank\" to be a number above 0"};
  profile.coresPerRank = cores->get<double>();
}

void read(const json &document, Profile &profile) {
  if (!document.is_object())
    throw Fault{"expected an object"};
  if (!document.contains("model"))
    throw Fault{"expected the profile of a program that trains a model"};
  if (textOf(document, "unit") != "ns")
    throw Fault{"expected times in ns"};
  if (document.value("computed_by", "") == "exact")
    throw Fault{
        "expected the profile of a run that computed the model, got one "
        "with --stages exact"};
  profile.device = document.value("device", "");
  profile.microBatchSize = countOf(
      memberOf(document, "micro_batch_size", "the number", &json::is_number),
      "micro_batch_size");
  profile.model = document["model"].dump();
  profile.types = textOf(document, "weight_type") + ", " +
                  textOf(document, "activation_type");
  profile.optimizer = textOf(
      memberOf(document, "optimizer", "the object", &json::is_object), "name");
  readCores(document, profile);
  for (const json &stage :
       memberOf(document, "stages", "the list", &json::is_array)) {
    if (!stage.is_object())
      throw Fault{"expected stages to be objects"};
    profile.stages.push_back(stageOf(stage));
    if (profile.stages.back().first != profile.layers)
      throw Fault{"expected a stage that begins at layer " +
                  std::to_string(profile.layers) +
                  ", got one that begins at layer " +
                  std::to_string(profile.stages.back().first)};
    profile.layers = profile.stages.back().end;
  }
  if (profile.stages.empty() || profile.microBatchSize < 1 ||
      profile.microBatchSize > UINT32_MAX)
    throw Fault{"expected stages, and a micro-batch of at least one sample and "
                "less than 2^32"};
}

} // namespace

std::string readProfile(std::string_view name, std::string_view text,
                        Profile &profile) {
  profile = {};
  profile.name = name;
  // The deepest nesting that is accepted. No valid profile is nested more
  // deeply, also with a list of earlier runs. Copying deeper JSON could
  // overflow the stack.
  constexpr int kDeepest = 10;
  bool isTooDeep = false;
  auto isKept = [&](int depth, json::parse_event_t, const json &) {
    isTooDeep |= depth > kDeepest;
    return !isTooDeep;
  };
  json document = json::parse(text, isKept, /*allow_exceptions=*/false);
  if (isTooDeep || document.is_discarded())
    return profile.name + ": expected JSON, as chimera-run --profile writes it";
  try {
    read(document, profile);
  } catch (const Fault &error) {
    return profile.name + ": " + error.text;
  } catch (const json::exception &) {
    return profile.name + ": expected a profile, as chimera-run --profile "
                          "writes it";
  }
  return {};
}

std::string checkProfile(const Profile &profile, const program::PackageT &model,
                         program::Types types, std::string_view optimizer) {
  auto differs = [&](const char *what, const std::string &expected,
                     const std::string &got) {
    return profile.name + ": expected a profile of " + what + " " + expected +
           ", got " + got;
  };
  auto layers = static_cast<int32_t>(program::layerCount(model));
  if (profile.layers != layers)
    return differs("a model with",
                   std::to_string(layers) + " layers (with embedding and head)",
                   std::to_string(profile.layers));
  if (const std::string other =
          program::differenceOfModels(profile.model, model);
      !other.empty())
    return profile.name + ": the profile is of another model: " + other;
  std::string values = std::string(program::nameOf(types.weights)) + ", " +
                       program::nameOf(types.activations);
  if (profile.types != values)
    return differs("weights and activations of", values, profile.types);
  if (profile.optimizer != optimizer)
    return differs("the optimizer", std::string(optimizer), profile.optimizer);
  return {};
}

namespace {
/// The kinds of measurements of each layer, by micro-batch size.
class KnownKinds {
public:
  /// Adds the kinds of `profile`. Returns true if the earlier profiles of the
  /// same micro-batch size lack one of them for some layer.
  bool add(const Profile &profile) {
    std::vector<unsigned> &layers = bySize[profile.microBatchSize];
    layers.resize(profile.layers);
    bool isNew = false;
    for (const MeasuredStage &stage : profile.stages)
      for (int32_t i = stage.first; i < stage.end; ++i) {
        isNew |= (stage.kinds() & ~layers[i]) != 0;
        layers[i] |= stage.kinds();
      }
    return isNew;
  }

  unsigned missing() const {
    unsigned kinds = 0;
    for (const auto &[size, layers] : bySize)
      for (unsigned known : layers)
        kinds |= ~known;
    return kinds & (kBackward | kSplitBackward | kRecompute);
  }

private:
  std::map<int64_t, std::vector<unsigned>> bySize;
};
} // namespace

std::string checkTogether(const std::vector<Profile> &profiles) {
  KnownKinds known;
  const Profile *first = nullptr; // the first profile that names its device
  for (const Profile &profile : profiles) {
    if (!first && !profile.device.empty())
      first = &profile;
    if (first && !profile.device.empty() && profile.device != first->device)
      return profile.name + ": expected a profile of the device " +
             first->device + ", as " + first->name + " is, got one of " +
             profile.device;
    if (!known.add(profile))
      return profile.name +
             ": this profile adds nothing to the earlier ones of "
             "micro-batch size " +
             std::to_string(profile.microBatchSize) +
             ": expected whole backwards, split backwards or recomputes that "
             "they lack";
  }
  return {};
}

unsigned missingKinds(const std::vector<Profile> &profiles) {
  KnownKinds known;
  for (const Profile &profile : profiles)
    known.add(profile);
  return known.missing();
}

} // namespace chimera::cost
