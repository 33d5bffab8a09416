//===- Registry.h - The schemes by name -------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_REGISTRY_H
#define CHIMERA_COMPILER_SCHEDULE_REGISTRY_H

#include "compiler/schedule/Formulas.h"
#include "compiler/schedule/Plan.h"

#include <span>
#include <string_view>

namespace chimera::schedule {

/// A family of schedules: one file and one row of the registry. Parser, help
/// text and tests all walk `schemes()`.
struct Scheme {
  const char *name;
  const char *summary;
  /// The conditions on D (workers), S (stages) and N (micro-batches), in words.
  const char *needs;
  std::span<const Option> options;
  /// Empty, or what is possible instead where sizes and options alone rule a
  /// plan out: cheap, for an editor.
  std::string (*check)(const Request &request);
  /// A plan without its order, cheap. Requires check to pass.
  Plan (*place)(const Request &request);
  /// The plan, or why there is none. Requires check to pass. It depends on
  /// sizes and options alone, not on what anything takes.
  Made (*make)(const Request &request);
  /// What holds of its own plans, a form that holds in fewer cases before the
  /// one that contains it.
  std::span<const BubbleFormula> bubbleFormulas;
  std::span<const PeakFormula> peakFormulas;
  /// Null, or what a user should know about a plan of its own, if anything:
  /// that something simpler beats it, or what it does to training.
  std::string (*note)(const Problem &problem) = nullptr;
  /// How many stages a worker has if nobody says.
  int32_t stagesPerWorker = 1;
};

std::span<const Scheme> schemes();

/// Null if there is no scheme of that name.
const Scheme *findScheme(std::string_view name);

/// "chimera, gpipe, 1f1b, gems, …".
std::string schemeNames();

/// A hint for a diagnostic, to follow "got NAME", if no scheme is called `name`
/// but papers or other tools use it: ": " and which scheme it is, or that there
/// is none yet and how to give its order. Case, hyphens and PyTorch's
/// "Schedule" make no difference. Empty for any other name.
std::string hintForUnknownScheme(std::string_view name);

/// A line for each scheme and, indented, for each option it knows.
std::string schemeHelp();

/// Empty, or what is possible instead where sizes and options alone rule a plan
/// out; where options are open, each setting of them.
std::string whyNot(const Scheme &scheme, const Request &request);

/// The scheme's plan for `request` without its order. Requires that whyNot
/// finds nothing wrong, and that no option is open.
Plan placePlan(const Scheme &scheme, const Request &request);

/// The scheme's plan for `request`, or why there is none. Options that are open
/// take their best values (Best.h).
Made makePlan(const Scheme &scheme, const Request &request);

/// The first formula that holds for a scheme's own plan of these sizes, or
/// null.
const BubbleFormula *findBubbleFormula(const Scheme &scheme,
                                       const Sizes &sizes);
const PeakFormula *findPeakFormula(const Scheme &scheme, const Sizes &sizes);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_REGISTRY_H
