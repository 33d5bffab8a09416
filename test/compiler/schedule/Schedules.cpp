//===- Schedules.cpp - Problems and schedules to test with ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/compiler/schedule/Schedules.h"

#include <stdexcept>

namespace chimera::schedule {

Case makeCase(const std::string &name, int32_t stages, int32_t microBatches,
              StageCost cost, bool splitBackward,
              const SchemeOptions &options) {
  const Scheme *scheme = findScheme(name);
  if (!scheme)
    throw std::invalid_argument("no scheme " + name);
  if (std::string error = scheme->check(stages, microBatches, options);
      !error.empty())
    throw std::invalid_argument(error);
  Problem problem;
  problem.workers = stages;
  problem.stages.assign(stages, cost);
  problem.pipelines = scheme->place(stages, microBatches, options);
  problem.splitBackward = splitBackward;
  problem.updates = scheme->updates;
  problem.steps = scheme->updates == Updates::Flush ? 1 : 2;
  return {scheme, problem, makeSchedule(*scheme, problem, options), options};
}

SchemeOptions choose(int32_t pipelines, Concatenation concatenation) {
  SchemeOptions options;
  options.pipelines = pipelines;
  options.concatenation = concatenation;
  return options;
}

std::vector<SchemeOptions> choices(const Scheme &scheme, int32_t stages) {
  std::vector<SchemeOptions> result;
  if (scheme.options.empty())
    result.push_back({});
  else
    for (int32_t pipelines = 1; pipelines <= stages; ++pipelines)
      for (Concatenation concatenation : kConcatenations)
        if (SchemeOptions options = choose(pipelines, concatenation);
            scheme.check(stages, 1, options).empty())
          result.push_back(options);
  return result;
}

std::string nameOf(const Scheme &scheme, int32_t stages, int32_t microBatches,
                   const SchemeOptions &options) {
  std::string name = std::string(scheme.name) + " D=" + std::to_string(stages) +
                     " N=" + std::to_string(microBatches);
  for (std::string_view option : scheme.options)
    name += " " + findSchemeOption(option)->print(options);
  return name;
}

std::string messages(const std::vector<Violation> &violations) {
  std::string text;
  for (const Violation &violation : violations)
    text += violation.message + "\n";
  return text;
}

} // namespace chimera::schedule
