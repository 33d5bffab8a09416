//===- Formulas.h - Closed forms of bubble and memory -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_FAMILIES_FORMULAS_H
#define CHIMERA_COMPILER_SCHEDULE_FAMILIES_FORMULAS_H

#include "compiler/schedule/model/Options.h"
#include "compiler/schedule/model/Problem.h"

#include <optional>
#include <utility>

namespace chimera::schedule {

/// The arguments of a formula.
struct Sizes {
  Options options; ///< of the scheme
  int64_t workers, stages, microBatches;
  bool isSplit = false; ///< all backwards are split; otherwise all are whole
  /// Times of one stage; all stages have the same times. The time of a
  /// backward, whole or split, includes a fused recompute.
  int64_t forward, backward;
  int64_t inputGradient, weightGradient; ///< 0 if backwards are whole
  bool recomputed = false;

  /// Number of stages of one pipeline on each worker, if all workers have the
  /// same number.
  int64_t chunks() const { return stages / workers; }

  bool operator==(const Sizes &) const = default;
};

/// The sizes of a problem to which formulas apply, or nothing for any other
/// problem. Formulas require that
///
/// - all stages take the same times,
/// - all backwards are whole, or all are split,
/// - backwards in parts divide into equal parts,
/// - there is no recomputation, or a fused one,
/// - messages take no time, and no workers share cores.
std::optional<Sizes> sizesOf(const Problem &problem, Options options);

/// A closed form of the bubble ratio: idle time divided by all time, up to the
/// flush or, without a flush, in the steady state. If its conditions hold, it
/// equals the result of `simulate`. In its text, D is the number of workers, v
/// of stages on each worker (1 unless mentioned), N of micro-batches and p of
/// pipelines. The times on one stage are f for a forward, b for a backward, i
/// for an input gradient and w for a weight gradient; b and i include a fused
/// recompute.
struct BubbleFormula {
  const char *formula;
  const char *conditions;
  const char *source;
  bool (*holds)(const Sizes &sizes);
  double (*value)(const Sizes &sizes);
  bool isSplit = false; ///< for problems with all backwards split; otherwise
                        ///< with all whole
};

/// A closed form of the peak activations, with the letters of BubbleFormula.
/// `value` returns the smallest and the largest value of
/// Timing::peakActivations over all workers.
struct PeakFormula {
  const char *formula;
  const char *conditions;
  const char *source;
  bool (*holds)(const Sizes &sizes);
  std::pair<int64_t, int64_t> (*value)(const Sizes &sizes);
  bool isSplit = false; ///< as in BubbleFormula
};

/// Sources of formulas.
inline constexpr const char *kTable2 = "Li and Hoefler, SC'21, Table 2";
inline constexpr const char *kTable3 = "Li and Hoefler, SC'21, Table 3";
inline constexpr const char *kSection2 = "Li and Hoefler, SC'21, section 2";
inline constexpr const char *kMeasured = "found by simulation";

/// Conditions and values that the formulas of several families share.
inline bool always(const Sizes &) { return true; }
inline double ratio(int64_t idle, int64_t busy) {
  return static_cast<double>(idle) / static_cast<double>(idle + busy);
}
/// The bubble ratio (D-1)/(N+D-1).
double linearBubble(const Sizes &sizes);
/// Peak activations of a schedule in which the last worker keeps those of 1
/// micro-batch, and the first worker those of min(N, D).
std::pair<int64_t, int64_t> upToWorkers(const Sizes &sizes);
/// The idle share of the makespan on a worker that runs N micro-batches on one
/// stage.
double idleShare(const Sizes &sizes, int64_t makespan);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_FAMILIES_FORMULAS_H
