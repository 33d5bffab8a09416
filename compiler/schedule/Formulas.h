//===- Formulas.h - Closed forms of bubble and memory -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_FORMULAS_H
#define CHIMERA_COMPILER_SCHEDULE_FORMULAS_H

#include "compiler/schedule/Registry.h"

#include <optional>

namespace chimera::schedule {

/// What a formula is a function of.
struct Sizes {
  SchemeOptions options;
  int64_t stages, microBatches;
  /// Of every stage; a backward with its recompute.
  int64_t forward, backward;
  bool recomputed = false;

  bool operator==(const Sizes &) const = default;
};

/// The sizes of a problem that formulas speak of: stages of equal times, whole
/// backwards, which halve evenly where they come in halves, no recomputation or
/// a fused one, messages that take no time. None for any other.
std::optional<Sizes> sizesOf(const Problem &problem,
                             const SchemeOptions &options);

/// A closed form of the bubble ratio: idle time over all time, up to the flush,
/// or in the steady state where there is none.
struct BubbleFormula {
  const char *scheme;
  const char *formula; ///< in the letters given below
  const char *conditions;
  const char *source;
  bool (*holds)(const Sizes &sizes);
  double (*value)(const Sizes &sizes);
};

/// The least and the most micro-batches whose activations a worker holds.
struct PeakFormula {
  const char *scheme;
  const char *formula;
  const char *conditions;
  const char *source;
  bool (*holds)(const Sizes &sizes);
  std::pair<int64_t, int64_t> (*value)(const Sizes &sizes);
};

/// All that the library knows; each equals what `simulate` finds wherever its
/// conditions hold. In them D is the number of stages, N of micro-batches, p of
/// pipelines, f and b are the times of a forward and a backward, this with its
/// recompute where that is fused. A form that
/// holds in fewer cases stands before the one that contains it.
std::span<const BubbleFormula> bubbleFormulas();
std::span<const PeakFormula> peakFormulas();

/// The first that holds for a scheme's own schedule of these sizes, or null.
const BubbleFormula *findBubbleFormula(const Scheme &scheme,
                                       const Sizes &sizes);
const PeakFormula *findPeakFormula(const Scheme &scheme, const Sizes &sizes);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_FORMULAS_H
