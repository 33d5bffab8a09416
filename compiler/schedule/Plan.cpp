//===- Plan.cpp - What a scheme is asked for, and what it decides ---------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Plan.h"

namespace chimera::schedule {

Problem problemOf(const Workload &workload, const Plan &plan) {
  Problem problem;
  static_cast<Workload &>(problem) = workload;
  problem.pipelines = plan.pipelines;
  problem.splits = plan.splits;
  problem.updates = plan.updates;
  problem.steps = plan.updates == Updates::Flush ? 1 : 2;
  return problem;
}

std::string comparePlacement(const Problem &problem, const Plan &plan) {
  if (problem.updates != plan.updates)
    return plan.updates == Updates::Flush
               ? "expected one step that a flush ends, got steps that overlap"
               : "expected steps that overlap, with the scheme's updates";
  if (problem.pipelines.size() != plan.pipelines.size())
    return "expected the scheme's " + std::to_string(plan.pipelines.size()) +
           (plan.pipelines.size() == 1 ? " pipeline" : " pipelines") +
           ", got " + std::to_string(problem.pipelines.size());
  for (size_t p = 0; p < plan.pipelines.size(); ++p)
    if (problem.pipelines[p] != plan.pipelines[p])
      return "expected the scheme's direction, placement and micro-batches for "
             "pipeline " +
             std::to_string(p);
  return {};
}

} // namespace chimera::schedule
