//===- Formulas.h - Closed forms of bubble and memory -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_FORMULAS_H
#define CHIMERA_COMPILER_SCHEDULE_FORMULAS_H

#include "compiler/schedule/Options.h"
#include "compiler/schedule/Problem.h"

#include <optional>
#include <utility>

namespace chimera::schedule {

/// What a formula is a function of.
struct Sizes {
  Options options; ///< of the scheme
  int64_t workers, stages, microBatches;
  bool isSplit = false; ///< all backwards are split, or all are whole
  /// Of every stage; a backward, whole or split, with its recompute.
  int64_t forward, backward;
  int64_t inputGradient, weightGradient; ///< where it is split
  bool recomputed = false;

  /// Stages of one pipeline on each worker, where it has as many on each.
  int64_t chunks() const { return stages / workers; }

  bool operator==(const Sizes &) const = default;
};

/// The sizes of a problem that formulas speak of: stages of equal times,
/// backwards all whole or all split, which halve evenly where they come in
/// halves, no recomputation or a fused one, messages that take no time. None
/// for any other.
std::optional<Sizes> sizesOf(const Problem &problem, Options options);

/// A closed form of the bubble ratio: idle time over all time, up to the flush,
/// or in the steady state where there is none. It equals what `simulate` finds
/// wherever its conditions hold. In its text D is the number of workers, v of
/// stages on each (1 unless it is named), N of micro-batches, p of pipelines;
/// f, b, i and w are the times of a forward, a backward and its two halves on
/// one stage, b and i with the recompute where that is fused.
struct BubbleFormula {
  const char *formula;
  const char *conditions;
  const char *source;
  bool (*holds)(const Sizes &sizes);
  double (*value)(const Sizes &sizes);
  bool isSplit = false; ///< holds where all backwards are split, else whole
};

/// The least and the most micro-batches whose activations a worker holds, each
/// counted once for every stage, in the same letters.
struct PeakFormula {
  const char *formula;
  const char *conditions;
  const char *source;
  bool (*holds)(const Sizes &sizes);
  std::pair<int64_t, int64_t> (*value)(const Sizes &sizes);
  bool isSplit = false; ///< as of BubbleFormula
};

/// Where formulas come from.
inline constexpr const char *kTable2 = "Li and Hoefler, SC'21, Table 2";
inline constexpr const char *kTable3 = "Li and Hoefler, SC'21, Table 3";
inline constexpr const char *kSection2 = "Li and Hoefler, SC'21, section 2";
inline constexpr const char *kMeasured = "found by simulation";

/// Conditions and values that several families' formulas share.
inline bool always(const Sizes &) { return true; }
inline double ratio(int64_t idle, int64_t busy) {
  return static_cast<double>(idle) / static_cast<double>(idle + busy);
}
/// (D-1)/(N+D-1).
double linearBubble(const Sizes &sizes);
/// 1 to min(N, D).
std::pair<int64_t, int64_t> upToWorkers(const Sizes &sizes);
/// The share of a makespan in which a worker is idle that runs N micro-batches
/// on one stage.
double idleShare(const Sizes &sizes, int64_t makespan);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_FORMULAS_H
