//===- Shares.h - Where the time of a step goes -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLAN_SHARES_H
#define CHIMERA_COMPILER_PLAN_SHARES_H

#include "compiler/plan/Evaluate.h"

#include <span>

namespace chimera::plan {

/// A part of a step's time.
struct Share {
  const char *name;
  const char *summary;
  double time; ///< ns
};

/// A proposal and where the time of its steps goes.
struct Detail {
  Proposal proposal;
  /// Compute, recompute, imbalance, bubble, messages, all-reduce, update, in
  /// this order; they sum to the step.
  std::vector<Share> shares;
  /// Of the stages that are recomputed.
  int32_t recomputed;
  bool hasSums; ///< whether there are several replicas of a stage

  /// The part that takes longest of those that another plan could leave out,
  /// all but the first; null where none takes any time.
  const Share *limit() const;
  /// Idle time, as a share of the step: imbalance, bubble and messages.
  double idleShare() const;
};

/// Requires that the evaluator made `proposal`.
Detail detailOf(const Evaluator &evaluator, const Proposal &proposal);

} // namespace chimera::plan

#endif // CHIMERA_COMPILER_PLAN_SHARES_H
