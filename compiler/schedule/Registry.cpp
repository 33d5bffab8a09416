//===- Registry.cpp - The schemes by name ---------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Registry.h"

#include "compiler/schedule/families/Families.h"

#include <algorithm>
#include <array>

namespace chimera::schedule {

std::span<const Scheme> schemes() {
  static const std::array<Scheme, 6> all = {
      kChimera, kGPipe,     kOneForwardOneBackward,
      kGems,    kPipeDream, kPipeDream2BW};
  return all;
}

const Scheme *findScheme(std::string_view name) {
  for (const Scheme &scheme : schemes())
    if (name == scheme.name)
      return &scheme;
  return nullptr;
}

std::string schemeNames() {
  std::string names;
  for (const Scheme &scheme : schemes())
    names += (names.empty() ? "" : ", ") + std::string(scheme.name);
  return names;
}

std::string schemeHelp() {
  std::string text;
  for (const Scheme &scheme : schemes()) {
    text += std::string(scheme.name) + ": " + scheme.summary + " (" +
            scheme.needs + ")\n";
    for (std::string_view name : scheme.options) {
      const SchemeOption *option = findSchemeOption(name);
      text += "  " + std::string(option->name) + " = " +
              option->print(SchemeOptions()) + ": " +
              std::string(option->summary) + " (" +
              std::string(option->values) + ")\n";
    }
  }
  return text;
}

std::string setOption(const Scheme &scheme, std::string_view name,
                      std::string_view value, SchemeOptions &options) {
  if (std::ranges::find(scheme.options, name) == scheme.options.end()) {
    std::string names;
    for (std::string_view known : scheme.options)
      names += (names.empty() ? "" : ", ") + std::string(known);
    return (names.empty() ? "expected no options"
                          : "expected one of the options " + names) +
           ", got \"" + std::string(name) + "\"";
  }
  const SchemeOption *option = findSchemeOption(name);
  if (!option->parse(value, options))
    return "expected " + std::string(name) + " to be " +
           std::string(option->values) + ", got \"" + std::string(value) + "\"";
  return {};
}

std::string checkPipelines(const Scheme &scheme, const Problem &problem,
                           const SchemeOptions &options) {
  auto stages = static_cast<int32_t>(problem.stages.size());
  int32_t microBatches = problem.microBatches();
  std::string error = scheme.check(stages, microBatches, options);
  if (!error.empty())
    return error;
  if (problem.workers != stages)
    return "expected as many workers as stages (" + std::to_string(stages) +
           "), got " + std::to_string(problem.workers);
  if (problem.updates != scheme.updates)
    return scheme.updates == Updates::Flush
               ? "expected a problem of one step that a flush ends, got one of "
                 "steps that overlap"
               : "expected a problem of steps that overlap, with the scheme's "
                 "updates";
  std::vector<Pipeline> laid = scheme.place(stages, microBatches, options);
  if (problem.pipelines.size() != laid.size())
    return "expected the scheme's " + std::to_string(laid.size()) +
           (laid.size() == 1 ? " pipeline" : " pipelines") + ", got " +
           std::to_string(problem.pipelines.size());
  for (size_t p = 0; p < laid.size(); ++p)
    if (problem.pipelines[p] != laid[p])
      return "expected the scheme's direction, placement and micro-batches for "
             "pipeline " +
             std::to_string(p);
  return {};
}

Schedule makeSchedule(const Scheme &scheme, const Problem &problem,
                      const SchemeOptions &options) {
  Schedule schedule = scheme.order(problem, options);
  return problem.splitBackward ? splitBackwards(schedule) : schedule;
}

} // namespace chimera::schedule
