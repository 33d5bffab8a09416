//===- Options.cpp - What a scheme lets a user choose ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Options.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace chimera::schedule {

static bool parsePipelines(std::string_view text, SchemeOptions &options) {
  int32_t value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return false;
  options.pipelines = value;
  return true;
}

static std::string printPipelines(const SchemeOptions &options) {
  return std::to_string(options.pipelines);
}

/// By the number of the enumerator.
static constexpr std::string_view kConcatenations[] = {
    "direct", "eager", "doubling", "fine-tuned-doubling", "halving"};

static bool parseConcatenation(std::string_view text, SchemeOptions &options) {
  const auto *at = std::ranges::find(kConcatenations, text);
  if (at == std::end(kConcatenations))
    return false;
  options.concatenation =
      static_cast<Concatenation>(at - std::begin(kConcatenations));
  return true;
}

static std::string printConcatenation(const SchemeOptions &options) {
  return std::string(
      kConcatenations[static_cast<size_t>(options.concatenation)]);
}

std::span<const SchemeOption> schemeOptions() {
  static constexpr SchemeOption kAll[] = {
      {"pipelines", "copies of the model, half of them down and half up",
       "2f for an f that divides half of the stages", parsePipelines,
       printPipelines},
      {"concatenation", "how basic units follow each other",
       "direct, eager, doubling, fine-tuned-doubling or halving",
       parseConcatenation, printConcatenation}};
  return kAll;
}

const SchemeOption *findSchemeOption(std::string_view name) {
  for (const SchemeOption &option : schemeOptions())
    if (option.name == name)
      return &option;
  return nullptr;
}

} // namespace chimera::schedule
