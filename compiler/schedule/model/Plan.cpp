//===- Plan.cpp - The request to a scheme, and its plan -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/model/Plan.h"

namespace chimera::schedule {

Problem problemOf(const Workload &workload, const Plan &plan) {
  Problem problem;
  static_cast<Workload &>(problem) = workload;
  problem.pipelines = plan.pipelines;
  problem.splits = plan.splits;
  problem.updates = plan.updates;
  problem.steps = stepsOverlap(plan.updates) ? 2 : 1;
  return problem;
}

} // namespace chimera::schedule
