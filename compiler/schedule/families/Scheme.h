//===- Scheme.h - A family of schedules -------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_FAMILIES_SCHEME_H
#define CHIMERA_COMPILER_SCHEDULE_FAMILIES_SCHEME_H

#include "compiler/schedule/families/Formulas.h"
#include "compiler/schedule/model/Plan.h"

#include <span>

namespace chimera::schedule {

/// A scheme: a family of schedules such as 1f1b or gpipe. Parser, help text and
/// tests all read the list of schemes (Registry.h).
struct Scheme {
  const char *name;
  const char *summary;
  /// The conditions on D (workers), S (stages) and N (micro-batches), as text.
  const char *needs;
  std::span<const Option> options;
  /// Returns an empty string or, if sizes and options rule out a plan, a text
  /// that says what is possible. Cheap enough for an editor to call.
  std::string (*check)(const Request &request);
  /// The plan without its order; cheap. Requires that `check` finds no error.
  Plan (*place)(const Request &request);
  /// The plan, or the reason why there is none. It depends only on sizes and
  /// options, not on times and bytes. Requires that `check` finds no error.
  PlanOrError (*make)(const Request &request);
  /// Closed forms for plans of this scheme. The first one that holds is used,
  /// so special cases come before general ones.
  std::span<const BubbleFormula> bubbleFormulas;
  std::span<const PeakFormula> peakFormulas;
  /// Advice on a problem with this scheme's plan, empty if there is none: for
  /// example that a simpler schedule is better, or how the schedule affects
  /// training. Null: no advice.
  std::string (*note)(const Problem &problem) = nullptr;
  /// The usual number of stages per worker, if the user does not choose one.
  int32_t stagesPerWorker = 1;
};

/// The first of the scheme's formulas that holds for these sizes, or null.
const BubbleFormula *findBubbleFormula(const Scheme &scheme,
                                       const Sizes &sizes);
const PeakFormula *findPeakFormula(const Scheme &scheme, const Sizes &sizes);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_FAMILIES_SCHEME_H
