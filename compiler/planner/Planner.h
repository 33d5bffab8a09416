//===- Planner.h - A question answered by plans that compile ----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The planner in its order: the space of plans, the search, the plans that
// still fit when they are compiled, and where the time of each goes.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLANNER_PLANNER_H
#define CHIMERA_COMPILER_PLANNER_PLANNER_H

#include "compiler/plan/Search.h"
#include "compiler/plan/Shares.h"
#include "compiler/planner/PlanDescription.h"

namespace chimera {

struct PlannerSettings {
  size_t shown = 10;      ///< how many plans to rank
  size_t needed = 1;      ///< so many, if there are, however long it takes
  bool keepSmall = false; ///< as plan::SearchSettings has it
  uint32_t threads = 1;
  /// Called now and then with how many of all plans are done, and the best step
  /// so far, ns, 0 for none.
  std::function<void(size_t done, size_t all, double best)> progress;
  /// Called, after that, with how many of the plans to show are compiled.
  std::function<void(size_t done, size_t all)> compiling;
};

/// Plans that compile, and what became of the others.
struct PlannedAnswer {
  plan::Space space;
  /// Of the last search, its plans as far as they compile; of `simulated` that
  /// is known where the small ones are kept.
  plan::Answer answer;
  std::vector<plan::Detail> ranked;    ///< at most `shown`, fastest first
  std::vector<plan::Detail> ofSchemes; ///< the fastest of each scheme
  std::vector<std::string> passedOver; ///< what did not fit, and why

  /// Why there is no plan at all. Requires that there is none.
  std::string whyNone() const;
};

/// Requires that the question is about the subject.
PlannedAnswer answerOf(const plan::Question &question, PlanSubject subject,
                       const PlannerSettings &settings);

} // namespace chimera

#endif // CHIMERA_COMPILER_PLANNER_PLANNER_H
