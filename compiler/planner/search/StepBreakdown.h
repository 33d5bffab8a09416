//===- StepBreakdown.h - The shares of a step's time ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLANNER_SEARCH_STEPBREAKDOWN_H
#define CHIMERA_COMPILER_PLANNER_SEARCH_STEPBREAKDOWN_H

#include "compiler/planner/search/Evaluate.h"

#include <span>

namespace chimera::plan {

/// The parts of a step's time, in the order of display.
enum class StepPart : uint8_t {
  Compute,
  Recompute,
  Imbalance,
  Bubble,
  SharedCores,
  Messages,
  AllReduce,
  Update,
};

/// The time of one part of a step.
struct StepShare {
  StepPart part;
  const char *name;
  const char *summary; ///< the end of a sentence that begins with "NAME: "
  double time;         ///< ns
};

/// A proposal with a breakdown of its step time.
struct StepBreakdown {
  Proposal proposal;
  std::vector<StepShare> shares; ///< one for each part; their sum is the step
  int32_t recomputed;            ///< number of stages that are recomputed
  bool hasSums;                  ///< true if gradients are summed over workers

  /// The time of a part in ns.
  double timeOf(StepPart part) const {
    return shares[static_cast<size_t>(part)].time;
  }
  /// The longest share other than computation. Another plan might avoid this
  /// time. Null if no other part takes time.
  const StepShare *largestAvoidableShare() const;
  /// The shares of imbalance, bubble and messages together, as a fraction of
  /// the step.
  double idleShare() const;
};

/// The breakdown of a proposal's step time. Requires that `evaluator` returned
/// `proposal`.
StepBreakdown breakdownOf(const Evaluator &evaluator, const Proposal &proposal);

} // namespace chimera::plan

#endif // CHIMERA_COMPILER_PLANNER_SEARCH_STEPBREAKDOWN_H
