//===- WeightNames.cpp - Names of parameters in files ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/weights/WeightNames.h"

#include "runtime/program/File.h"
#include "runtime/program/Layers.h"
#include "runtime/program/Printable.h"
#include "runtime/system/ShallowJson.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>

namespace chimera::runtime {
namespace {

using nlohmann::json;

constexpr size_t kMostBytes = size_t{1} << 20;
constexpr char kIgnoredEntry[] = "ignored";
constexpr char kExpected[] =
    "expected a name or {\"name\": NAME, \"transposed\": true}, got ";

/// The number with these digits. None if `digits` has other characters, a
/// leading zero or more than 9 digits. With 9 digits, adding an offset cannot
/// overflow.
std::optional<int64_t> numberOf(std::string_view digits) {
  if (digits.empty() || digits.size() > 9 ||
      (digits.size() > 1 && digits[0] == '0') ||
      digits.find_first_not_of("0123456789") != std::string_view::npos)
    return std::nullopt;
  return std::stoll(std::string(digits));
}

struct Match {
  std::optional<int64_t> number; ///< matched by {n}, if the pattern has {n}
};

/// Matches `name` with `pattern`. Returns none if `name` does not match.
std::optional<Match> match(std::string_view pattern, std::string_view name) {
  constexpr std::string_view kNumber = "{n}";
  const size_t at = pattern.find(kNumber);
  if (at == std::string_view::npos)
    return name == pattern ? std::optional(Match{}) : std::nullopt;
  const std::string_view before = pattern.substr(0, at);
  const std::string_view after = pattern.substr(at + kNumber.size());
  if (name.size() < before.size() + after.size() || !name.starts_with(before) ||
      !name.ends_with(after))
    return std::nullopt;
  name.remove_prefix(before.size());
  name.remove_suffix(after.size());
  const std::optional<int64_t> number = numberOf(name);
  return number ? std::optional(Match{number}) : std::nullopt;
}

/// Replaces {n} in `name` by the number `n`, {n+1} by `n` + 1 and so on.
/// Returns an error message, or an empty string if there is no error.
std::string fillNumbers(std::string &name, const std::optional<int64_t> &n) {
  std::string filled;
  for (size_t at = 0; at < name.size();) {
    if (name[at] != '{') {
      filled += name[at++];
      continue;
    }
    const size_t end = std::min(name.find('}', at), name.size() - 1);
    const std::string place = name.substr(at, end + 1 - at);
    at = end + 1;
    std::optional<int64_t> offset;
    if (place == "{n}")
      offset = 0;
    else if (place.starts_with("{n+") || place.starts_with("{n-"))
      offset = numberOf(std::string_view(place).substr(3, place.size() - 4));
    if (!offset || !place.ends_with('}'))
      return "expected {n}, {n+1} or {n-1}, got " + place;
    if (!n)
      return place + " cannot be replaced: the parameter's name has no {n}";
    const int64_t number = *n + (place[2] == '-' ? -*offset : *offset);
    if (number < 0)
      return place + " is less than 0 if {n} is " + std::to_string(*n);
    filled += std::to_string(number);
  }
  name = filled;
  return name == "__metadata__" ? "a tensor cannot have that name" : "";
}

/// The tensor in an entry; none if the entry is invalid.
std::optional<NamedTensor> tensorIn(const json &entry) {
  if (entry.is_string())
    return NamedTensor{entry.get<std::string>()};
  if (!entry.is_object())
    return std::nullopt;
  const auto name = entry.find("name"), transposed = entry.find("transposed");
  const bool hasTransposed = transposed != entry.end();
  if (name == entry.end() || !name->is_string() ||
      (hasTransposed && !transposed->is_boolean()) ||
      entry.size() != 1u + hasTransposed)
    return std::nullopt;
  return NamedTensor{name->get<std::string>(),
                     hasTransposed && transposed->get<bool>()};
}

bool isListOfNames(const json &value) {
  return value.is_array() &&
         std::all_of(value.begin(), value.end(),
                     [](const json &name) { return name.is_string(); });
}

/// Parses the text. Calls `onRepeated` with each key that occurs twice in an
/// object, since the parser silently keeps the last one. Throws
/// json::parse_error.
template <typename OnRepeated>
json parse(const std::string &text, OnRepeated onRepeated) {
  std::vector<std::set<std::string>> open; // keys of open objects
  return json::parse(text, [&](int, json::parse_event_t event, json &value) {
    if (event == json::parse_event_t::object_start)
      open.emplace_back();
    else if (event == json::parse_event_t::object_end)
      open.pop_back();
    else if (event == json::parse_event_t::key &&
             !open.back().insert(value.get<std::string>()).second)
      onRepeated(value.get<std::string>());
    return true;
  });
}

} // namespace

std::string checkHasWeights(const program::ProgramT &program) {
  if (!program.model)
    return "expected a program with a model, got one of bare stages, which has "
           "no weights to keep";
  const std::string problem = program::checkPackage(*program.model);
  return problem.empty() ? "" : "model: " + problem;
}

WeightNames::WeightNames(const program::ProgramT &program,
                         const std::string &path) {
  auto fail = [&](const std::string &reason) {
    throw std::runtime_error("cannot use the names in '" + path +
                             "': " + reason);
  };
  if (const std::string problem = checkHasWeights(program); !problem.empty())
    fail(problem);
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad())
    fail(std::strerror(errno));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMostBytes)
    fail("expected at most 1 MiB");
  if (!isShallow(text, 2))
    fail("it nests more than two levels");
  fileDigest = program::checksum(std::as_bytes(std::span(text)));

  std::string problems;
  auto tell = [&](const std::string &name, const std::string &problem) {
    problems += "\n  " + program::printable(name + ": " + problem);
  };
  json entries;
  try {
    entries = parse(text, [&](const std::string &key) {
      tell(key, "this key occurs twice");
    });
  } catch (const json::parse_error &error) {
    fail(program::printable(error.what()));
  }
  if (!entries.is_object())
    fail("expected a JSON object");

  struct Held {
    std::string name;
    bool isMatrix;
  };
  const program::PackageT &model = *program.model;
  std::vector<Held> parameters;
  for (const auto &[layer, number, parameter] :
       program::stageParameters(model, 0, program::layerCount(model)))
    parameters.push_back({program::parameterName(model, layer, number),
                          parameter.shape.size() == 2});

  for (const auto &[entry, value] : entries.items()) {
    if (entry == kIgnoredEntry) {
      if (isListOfNames(value))
        ignored = value.get<std::vector<std::string>>();
      else
        tell(entry, "expected a list of names, got " + value.dump());
      continue;
    }
    const std::optional<NamedTensor> pattern = tensorIn(value);
    if (!pattern) {
      tell(entry, kExpected + value.dump());
      continue;
    }
    bool isUsed = false;
    std::string problem;
    for (const Held &parameter : parameters) {
      const std::optional<Match> found = match(entry, parameter.name);
      if (!found || !problem.empty())
        continue;
      isUsed = true;
      NamedTensor tensor = *pattern;
      problem = fillNumbers(tensor.name, found->number);
      if (problem.empty() && tensor.isTransposed && !parameter.isMatrix)
        problem = parameter.name + " is not a matrix, which can be transposed";
      if (problem.empty() && !tensors.emplace(parameter.name, tensor).second)
        problem = parameter.name + " has another entry too";
    }
    if (!isUsed)
      problem = "the program's model has no parameter of this name";
    if (!problem.empty())
      tell(entry, problem);
  }

  std::map<std::string, std::string> owners; // the parameter of each tensor
  for (const Held &parameter : parameters) {
    const std::string tensor = tensorOf(parameter.name).name;
    const auto [owner, isFirst] = owners.emplace(tensor, parameter.name);
    if (!isFirst)
      tell(tensor, "it is the tensor of " + owner->second + " and of " +
                       parameter.name);
    if (isIgnored(tensor))
      tell(tensor,
           "it is in \"ignored\", but it is the tensor of " + parameter.name);
  }
  if (!problems.empty())
    fail("its entries do not fit the program's model:" + problems);
}

NamedTensor WeightNames::tensorOf(const std::string &parameter) const {
  const auto found = tensors.find(parameter);
  return found == tensors.end() ? NamedTensor{parameter} : found->second;
}

bool WeightNames::isIgnored(const std::string &tensor) const {
  return std::any_of(
      ignored.begin(), ignored.end(),
      [&](const std::string &pattern) { return match(pattern, tensor); });
}

} // namespace chimera::runtime
