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

/// The parts of a step's time, in the order in which they are shown.
enum class Part : uint8_t {
  Compute,
  Recompute,
  Imbalance,
  Bubble,
  SharedCores,
  Messages,
  AllReduce,
  Update,
};

/// How much of a step's time a part takes.
struct Share {
  Part part;
  const char *name;
  const char *summary; ///< to be read after "NAME: "
  double time;         ///< ns
};

/// A proposal and where the time of its steps goes.
struct Detail {
  Proposal proposal;
  std::vector<Share> shares; ///< one for each part; they sum to the step
  int32_t recomputed;        ///< of how many stages forwards run again
  bool hasSums;              ///< whether gradients are summed over workers

  /// What a part takes, ns.
  double timeOf(Part part) const {
    return shares[static_cast<size_t>(part)].time;
  }
  /// The share that takes longest of those that another plan could leave out,
  /// which are all but the computation; null where none takes any time.
  const Share *limit() const;
  /// Idle time, as a share of the step: imbalance, bubble and messages.
  double idleShare() const;
};

/// Requires that the evaluator made `proposal`.
Detail detailOf(const Evaluator &evaluator, const Proposal &proposal);

} // namespace chimera::plan

#endif // CHIMERA_COMPILER_PLAN_SHARES_H
