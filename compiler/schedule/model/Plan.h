//===- Plan.h - The request to a scheme, and its plan -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_MODEL_PLAN_H
#define CHIMERA_COMPILER_SCHEDULE_MODEL_PLAN_H

#include "compiler/schedule/model/Options.h"
#include "compiler/schedule/model/Schedule.h"

#include <optional>

namespace chimera::schedule {

/// The input of a scheme. It has at least one worker, stage and micro-batch.
struct Request : Workload {
  int32_t microBatches = 0; ///< of one step
  /// True if every backward is to be split. Some schemes always split all
  /// backwards, and place input gradients and weight gradients themselves. For
  /// any other scheme, each weight gradient is put directly after its input
  /// gradient.
  bool splitBackward = false;
  Options options; ///< of the scheme

  int32_t stageCount() const { return static_cast<int32_t>(stages.size()); }
};

/// The decisions of a scheme, a file or a search: placement, micro-batches of
/// each pipeline, split backwards, updates and order. A workload and a plan
/// together are a problem and its solution. Code that reads a plan does not
/// depend on how the plan was made.
struct Plan {
  /// The options of the scheme, none with the value kBest. Empty if there is no
  /// scheme.
  Options options;
  std::vector<Pipeline> pipelines; ///< each has micro-batches
  Splits splits;
  Updates updates = Updates::Flush;
  /// The order of actions, without recomputes; insertRecompute adds recomputes.
  /// If steps overlap, the order has two steps and a body on each worker.
  /// Otherwise it has one step.
  Schedule order;
};

/// A plan, or the reason why there is none.
struct PlanOrError {
  std::optional<Plan> plan;
  std::string reason;

  PlanOrError(Plan plan) : plan(std::move(plan)) {}
  PlanOrError(std::string reason) : reason(std::move(reason)) {}
};

/// The problem that the plan's order solves.
Problem problemOf(const Workload &workload, const Plan &plan);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_MODEL_PLAN_H
