//===- Options.cpp - What a scheme lets a user choose ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Options.h"

#include <charconv>

namespace chimera::schedule {

static bool parsePipelines(std::string_view text, SchemeOptions &options) {
  int32_t value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1)
    return false;
  options.pipelines = value;
  return true;
}

static std::string printPipelines(const SchemeOptions &options) {
  return std::to_string(options.pipelines);
}

static bool parseConcatenation(std::string_view text, SchemeOptions &options) {
  if (text == "direct")
    options.concatenation = Concatenation::Direct;
  else if (text == "doubling")
    options.concatenation = Concatenation::Doubling;
  else
    return false;
  return true;
}

static std::string printConcatenation(const SchemeOptions &options) {
  return options.concatenation == Concatenation::Direct ? "direct" : "doubling";
}

std::span<const SchemeOption> schemeOptions() {
  static constexpr SchemeOption kAll[] = {
      {"pipelines", "copies of the model, half of them down and half up",
       "2f for an f that divides half of the stages", parsePipelines,
       printPipelines},
      {"concatenation", "how basic units follow each other",
       "direct or doubling", parseConcatenation, printConcatenation}};
  return kAll;
}

const SchemeOption *findSchemeOption(std::string_view name) {
  for (const SchemeOption &option : schemeOptions())
    if (option.name == name)
      return &option;
  return nullptr;
}

} // namespace chimera::schedule
