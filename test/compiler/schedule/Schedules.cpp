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
  return {scheme, problem, makeSchedule(*scheme, problem, options), options};
}

std::string messages(const std::vector<Violation> &violations) {
  std::string text;
  for (const Violation &violation : violations)
    text += violation.message + "\n";
  return text;
}

} // namespace chimera::schedule
