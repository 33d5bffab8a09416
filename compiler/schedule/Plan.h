//===- Plan.h - What a scheme is asked for, and what it decides -*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_PLAN_H
#define CHIMERA_COMPILER_SCHEDULE_PLAN_H

#include "compiler/schedule/Options.h"
#include "compiler/schedule/Schedule.h"

#include <optional>

namespace chimera::schedule {

/// What a scheme is asked to plan: all that it may look at before it places
/// anything. It has at least one worker, stage and micro-batch.
struct Request : Workload {
  int32_t microBatches = 0; ///< of one step
  /// Every backward in two halves. A scheme that splits them anyway places the
  /// halves itself; of any other, the weight gradient stands straight after the
  /// input gradient.
  bool splitBackward = false;
  Options options; ///< of the scheme

  int32_t stageCount() const { return static_cast<int32_t>(stages.size()); }
};

/// What was decided. With the workload it was decided for it is a problem and
/// its solution, whoever decided: nothing that reads a plan looks at its maker.
struct Plan {
  Options options; ///< of the scheme, none open; empty where it has none
  std::vector<Pipeline> pipelines; ///< all of them with micro-batches
  Splits splits;
  Updates updates = Updates::Flush;
  /// Without recomputes, which insertRecompute adds. Of one step or, where
  /// steps overlap, of two and their bodies.
  Schedule order;
};

/// A plan, or the reason why there is none.
struct Made {
  std::optional<Plan> plan;
  std::string reason;

  Made(Plan plan) : plan(std::move(plan)) {}
  Made(std::string reason) : reason(std::move(reason)) {}
};

/// The problem that `plan` solves with its order.
Problem problemOf(const Workload &workload, const Plan &plan);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_PLAN_H
