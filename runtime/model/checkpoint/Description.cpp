//===- Description.cpp - The file training.json of a checkpoint -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/checkpoint/Description.h"

#include "runtime/data/InputFile.h"
#include "runtime/model/checkpoint/Folder.h"
#include "runtime/program/ModelKey.h"
#include "runtime/program/Printable.h"
#include "runtime/system/ShallowJson.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <span>
#include <stdexcept>

#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace chimera;
using namespace chimera::runtime;
using program::printable;

namespace {
constexpr char kFormat[] = "chimera checkpoint 1";
constexpr std::string_view kNoChecksum = "0000000000000000";

std::string hexadecimal(uint64_t number) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(number));
  return text;
}

/// The position of the digits of the file's own checksum in the text of
/// training.json: after the first key of this name.
size_t digitsOfChecksum(std::string_view text) {
  constexpr std::string_view kKey = "\"checksum\": \"";
  const size_t key = text.find(kKey);
  return key == std::string_view::npos ? key : key + kKey.size();
}

/// The checksum of the text of training.json.
std::string checksumOfText(std::string text) {
  const size_t at = digitsOfChecksum(text);
  if (at != std::string::npos && at + kNoChecksum.size() <= text.size())
    text.replace(at, kNoChecksum.size(), kNoChecksum);
  return checksumOf(std::as_bytes(std::span(text)));
}

/// The digests of the operators of each layer of a package (Description.h).
std::vector<std::string> digestsOfGraphs(const program::PackageT &package) {
  std::vector<std::string> digests;
  std::string text;
  auto add = [&](const auto &value) {
    text.append(reinterpret_cast<const char *>(&value), sizeof value);
  };
  auto addText = [&](const std::string &value) {
    add(value.size());
    text += value;
  };
  for (const auto &layer : package.layers) {
    const program::LayerKindT &kind = *package.kinds.at(layer->kind);
    text.clear();
    for (const auto &call : kind.graphs->forward->calls) {
      addText(call->operator_);
      addText(call->overload);
      for (const auto &argument : call->arguments) {
        add(argument->kind);
        for (double number : argument->numbers)
          add(number);
        addText(argument->text);
      }
    }
    digests.push_back(checksumOf(std::as_bytes(std::span(text))));
  }
  return digests;
}

/// The value of a key, or an error that names the key.
template <typename Value>
Value valueOf(const nlohmann::ordered_json &object, const char *key,
              const char *expected) {
  const auto found = object.find(key);
  bool isRight = found != object.end();
  if constexpr (std::is_same_v<Value, uint64_t>)
    isRight = isRight && found->is_number_unsigned();
  else
    isRight = isRight && found->is_string();
  if (!isRight)
    throw std::runtime_error(std::string("expected \"") + key + "\" with " +
                             expected);
  return found->template get<Value>();
}

/// The object of a key, as text.
std::string objectOf(const nlohmann::ordered_json &root, const char *key) {
  const auto found = root.find(key);
  if (found == root.end() || !found->is_object())
    throw std::runtime_error(std::string("expected \"") + key +
                             "\" with an object");
  return found->dump();
}

std::vector<std::string> graphsOf(const nlohmann::ordered_json &root) {
  const auto found = root.find("graphs");
  const auto isText = [](const auto &each) { return each.is_string(); };
  if (found == root.end() || !found->is_array() ||
      !std::ranges::all_of(*found, isText))
    throw std::runtime_error("expected \"graphs\" with a list of texts");
  return *found;
}

std::map<std::string, Checksums>
checksumsOf(const nlohmann::ordered_json &root) {
  std::map<std::string, Checksums> all;
  const auto files = root.find("checksums");
  const char *wrong = "expected \"checksums\" with an object of files, each "
                      "with an object of tensors and checksums";
  if (files == root.end() || !files->is_object())
    throw std::runtime_error(wrong);
  for (const auto &[file, tensors] : files->items()) {
    if (!tensors.is_object())
      throw std::runtime_error(wrong);
    Checksums &own = all[file];
    for (const auto &[name, sum] : tensors.items()) {
      if (!sum.is_string())
        throw std::runtime_error(wrong);
      own[name] = sum.get<std::string>();
    }
  }
  return all;
}
} // namespace

std::string chimera::runtime::checksumOf(ConstBytes bytes) {
  return hexadecimal(XXH3_64bits(bytes.data(), bytes.size()));
}

/// The numbers of the optimizer that determine its updates, as a JSON object.
/// `steps` is the length of the training.
static std::string numbersOf(const program::OptimizerT &optimizer,
                             uint64_t steps) {
  nlohmann::ordered_json numbers = {
      {"learning_rate", optimizer.learning_rate},
      {"lr_schedule", program::nameOf(optimizer.lr_schedule)},
      {"warmup", optimizer.warmup},
      {"min_lr", optimizer.min_lr},
      {"decay_steps", optimizer.decay_steps}};
  if (optimizer.lr_schedule != program::RateSchedule::Constant)
    numbers["lr_steps"] = optimizer.lr_steps > 0 ? optimizer.lr_steps : steps;
  numbers["beta1"] = optimizer.beta1;
  numbers["beta2"] = optimizer.beta2;
  numbers["epsilon"] = optimizer.epsilon;
  numbers["momentum"] = optimizer.momentum;
  numbers["nesterov"] = optimizer.nesterov;
  if (optimizer.clip_norm > 0)
    numbers["clip_norm"] = optimizer.clip_norm;
  numbers["weight_decay"] = optimizer.weight_decay;
  numbers["no_decay"] = optimizer.no_decay;
  if (!optimizer.no_muon.empty())
    numbers["no_muon"] = optimizer.no_muon;
  return numbers.dump();
}

CheckpointDescription
chimera::runtime::describeCheckpoint(const program::ProgramT &program,
                                     uint64_t step, uint64_t steps,
                                     uint64_t dataDigest) {
  return {.step = step,
          .updates = step * program::updatesPerStep(program),
          .samplesPerStep = program::samplesPerStep(program),
          .seed = program.seed,
          .optimizer = program.optimizer->name,
          .weightType = program::nameOf(program.weight_type),
          .data = dataDigest == 0 ? "" : hexadecimal(dataDigest),
          .program = program.name + " (" + program.schedule + ")",
          .model = program::modelKey(*program.model),
          .graphs = digestsOfGraphs(*program.model),
          .numbers = numbersOf(*program.optimizer, steps),
          .checksums = {}};
}

std::string chimera::runtime::format(const CheckpointDescription &description) {
  nlohmann::ordered_json root;
  root["format"] = kFormat;
  root["checksum"] = kNoChecksum;
  root["step"] = description.step;
  root["updates"] = description.updates;
  root["samples_per_step"] = description.samplesPerStep;
  root["seed"] = description.seed;
  root["optimizer"] = description.optimizer;
  root["weight_type"] = description.weightType;
  root["data"] = description.data;
  root["program"] = description.program;
  root["model"] = nlohmann::ordered_json::parse(description.model);
  root["graphs"] = description.graphs;
  root["numbers"] = nlohmann::ordered_json::parse(description.numbers);
  root["checksums"] = description.checksums;
  std::string text = root.dump(1) + "\n";
  const std::string sum = checksumOfText(text);
  return text.replace(digitsOfChecksum(text), sum.size(), sum);
}

CheckpointDescription
chimera::runtime::readDescription(const std::string &folder) try {
  const InputFile file(folder + "/" + kTrainingFile, "cannot read");
  constexpr uint64_t kLargest = 100'000'000;
  if (file.size() > kLargest)
    throw std::runtime_error("expected at most 100 MB");
  std::string text(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  if (!isShallow(text, 3))
    throw std::runtime_error("expected at most three levels of objects");
  const auto root =
      nlohmann::ordered_json::parse(text, nullptr, /*exceptions=*/false);
  if (!root.is_object())
    throw std::runtime_error("expected a JSON object");
  if (valueOf<std::string>(root, "format", "the name of the format") != kFormat)
    throw std::runtime_error(std::string("expected the format '") + kFormat +
                             "', got '" + root["format"].get<std::string>() +
                             "'");
  const char *number = "a whole number", *name = "a text";
  CheckpointDescription description{
      .step = valueOf<uint64_t>(root, "step", number),
      .updates = valueOf<uint64_t>(root, "updates", number),
      .samplesPerStep = valueOf<uint64_t>(root, "samples_per_step", number),
      .seed = valueOf<uint64_t>(root, "seed", number),
      .optimizer = valueOf<std::string>(root, "optimizer", name),
      .weightType = valueOf<std::string>(root, "weight_type", name),
      .data = valueOf<std::string>(root, "data", name),
      .program = valueOf<std::string>(root, "program", name),
      .model = objectOf(root, "model"),
      .graphs = graphsOf(root),
      .numbers = objectOf(root, "numbers"),
      .checksums = checksumsOf(root)};
  const auto saved = valueOf<std::string>(root, "checksum", name);
  if (const std::string got = checksumOfText(text); got != saved)
    throw std::runtime_error("expected a file with the checksum " +
                             printable(saved) + ", got one with " + got +
                             ": it is damaged, or was edited");
  return description;
} catch (const std::runtime_error &error) {
  throw std::runtime_error("cannot resume from '" + folder + "': " +
                           kTrainingFile + ": " + error.what() + kTakeAnother);
}

std::string
chimera::runtime::reasonNotToResume(const CheckpointDescription &saved,
                                    const program::ProgramT &program) {
  if (const std::string other =
          program::differenceOfModels(saved.model, *program.model);
      !other.empty())
    return "the checkpoint is of another model: " + other +
           ": give the program of that model, or train this one from its first "
           "step, with other folders";
  const CheckpointDescription now =
      describeCheckpoint(program, saved.step, /*steps=*/0, /*dataDigest=*/0);
  if (saved.optimizer != now.optimizer)
    return "expected a checkpoint of the optimizer " + now.optimizer +
           ", got one of " + printable(saved.optimizer) +
           ": to start with its weights and no optimizer state, give --load";
  if (saved.weightType != now.weightType)
    return "expected weights of type " + now.weightType + ", got " +
           printable(saved.weightType) +
           ": compile the program with the checkpoint's type";
  if (saved.samplesPerStep != now.samplesPerStep)
    return "expected " + std::to_string(now.samplesPerStep) +
           " samples per step, as in the program, got " +
           std::to_string(saved.samplesPerStep) +
           ": micro-batches, their size and the copies may change, but not "
           "their product";
  return {};
}

/// A text for each of the optimizer's numbers that differs between two objects
/// of numbersOf.
static std::vector<std::string> changedNumbers(const std::string &saved,
                                               const std::string &now) {
  std::vector<std::string> changes;
  const auto before = nlohmann::json::parse(saved, nullptr, false);
  const auto after = nlohmann::json::parse(now, nullptr, false);
  if (!before.is_object() || !after.is_object())
    return changes;
  auto textOf = [](const nlohmann::json &numbers, const std::string &name) {
    return numbers.contains(name) ? numbers[name].dump() : "not set";
  };
  nlohmann::json all = before;
  all.update(after);
  for (const auto &[name, ignored] : all.items())
    if (textOf(before, name) != textOf(after, name))
      changes.push_back(
          name + " was " + textOf(before, name) + " and is " +
          textOf(after, name) +
          // Without this option, it follows --steps.
          (name == "lr_steps" && before.contains(name) && after.contains(name)
               ? " (--lr-steps " + textOf(before, name) + " keeps it)"
               : ""));
  return changes;
}

/// Names the layers whose graphs differ: "layer 2 computes", "layers 2 and 3
/// compute" or "layer 2 and 5 others compute". Empty if there are none.
static std::string changedLayers(const std::vector<std::string> &saved,
                                 const std::vector<std::string> &now) {
  std::vector<size_t> layers;
  for (size_t i = 0; i < std::max(saved.size(), now.size()); ++i)
    if (i >= saved.size() || i >= now.size() || saved[i] != now[i])
      layers.push_back(i);
  if (layers.empty())
    return {};
  const std::string first = std::to_string(layers[0]);
  return layers.size() == 1 ? "layer " + first + " computes"
         : layers.size() == 2
             ? "layers " + first + " and " + std::to_string(layers[1]) +
                   " compute"
             : "layer " + first + " and " + std::to_string(layers.size() - 1) +
                   " others compute";
}

std::string chimera::runtime::noteOfChanges(const CheckpointDescription &saved,
                                            const CheckpointDescription &now) {
  std::string changes;
  auto add = [&](const std::string &text) {
    changes += (changes.empty() ? "" : ", and ") + text;
  };
  if (saved.seed != now.seed)
    add("the seed was " + std::to_string(saved.seed) + " and is " +
        std::to_string(now.seed));
  if (!saved.data.empty() && !now.data.empty() && saved.data != now.data)
    add("the data, their order or the held-out part (--hold-out, --validation) "
        "are other ones");
  if (const std::string layers = changedLayers(saved.graphs, now.graphs);
      !layers.empty())
    add(layers + " with other operators or numbers, such as another "
                 "activation, dropout or number of heads");
  for (const std::string &change : changedNumbers(saved.numbers, now.numbers))
    add(change);
  return changes.empty() ? ""
                         : changes + ": results will differ from those of a "
                                     "run without interruption";
}
