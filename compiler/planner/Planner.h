//===- Planner.h - Answers a question with plans that compile ---*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The steps of the planner: list all choices, search the best, change plans
// until their programs fit, and break down their step times.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLANNER_PLANNER_H
#define CHIMERA_COMPILER_PLANNER_PLANNER_H

#include "compiler/planner/PlanDescription.h"
#include "compiler/planner/search/Search.h"
#include "compiler/planner/search/StepBreakdown.h"

namespace chimera {

struct PlannerSettings {
  size_t planCount = 10; ///< number of plans to rank
  /// The search continues until it has this many plans, even if it takes long.
  /// It ends with fewer plans only if no more exist.
  size_t needed = 1;
  bool keepParetoFront = false; ///< as in plan::SearchSettings
  uint32_t threads = 1;
  /// Called now and then. `done` of `all` choices are evaluated. `best` is the
  /// shortest step so far in ns, 0 for none.
  std::function<void(size_t done, size_t all, double best)> progress;
  /// Called while plans are compiled, after the search. `done` of `all` plans
  /// are compiled.
  std::function<void(size_t done, size_t all)> compiling;
};

/// Plans that compile, and the outcomes of the other choices.
struct PlannerResult {
  plan::Space space;
  /// The answer of the last search. `ranked` and `ofSchemes` only have plans
  /// that compile. If PlannerSettings::keepParetoFront is set, `simulated` has
  /// no plan that is known not to compile.
  plan::Answer answer;
  /// At most PlannerSettings::planCount, fastest first.
  std::vector<plan::StepBreakdown> ranked;
  std::vector<plan::StepBreakdown> ofSchemes; ///< the fastest of each scheme
  /// Choices that do not fit, with reasons.
  std::vector<std::string> rejectedPlans;

  /// The reason why there is no plan. Requires that there is no plan.
  std::string noPlanReason() const;
};

/// Answers `question` with plans that compile. Requires that `question` is
/// about the model and the machine of `ops`.
PlannerResult makePlans(const plan::Question &question, PlannerOps ops,
                        const PlannerSettings &settings);

} // namespace chimera

#endif // CHIMERA_COMPILER_PLANNER_PLANNER_H
