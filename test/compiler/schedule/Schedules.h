//===- Schedules.h - Problems and schedules to test with --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_COMPILER_SCHEDULE_SCHEDULES_H
#define CHIMERA_TEST_COMPILER_SCHEDULE_SCHEDULES_H

#include "compiler/schedule/MakePlan.h"
#include "compiler/schedule/families/Chimera.h"
#include "compiler/schedule/families/Registry.h"
#include "compiler/schedule/verify/Verify.h"

#include <string>
#include <vector>

namespace chimera::schedule {

/// The options of a scheme (by default its own defaults), and the number of
/// stages of a pipeline on each worker. A test chooses them, and the numbers of
/// workers and micro-batches.
struct Choice {
  Options options;
  int32_t chunks;

  Choice(Options options = {}, int32_t chunks = 1)
      : options(std::move(options)), chunks(chunks) {}
};

/// A scheme with its plan for some number of workers and micro-batches. All
/// stages are equal.
struct Case {
  const Scheme *scheme;
  Choice choice;
  Problem problem;
  Schedule schedule;
};

Request requestFor(const Scheme &scheme, int32_t workers, int32_t microBatches,
                   const Choice &choice = {}, StageCost cost = {},
                   bool splitBackward = false);

/// The reason why the scheme has no plan for these numbers of workers and
/// micro-batches. Empty if the scheme has a plan.
std::string planError(const Scheme &scheme, int32_t workers,
                      int32_t microBatches, const Choice &choice = {});
inline bool canPlan(const Scheme &scheme, int32_t workers, int32_t microBatches,
                    const Choice &choice = {}) {
  return planError(scheme, workers, microBatches, choice).empty();
}

/// Requires that the scheme exists and has a plan for these numbers (canPlan).
Case makeCase(const std::string &scheme, int32_t workers, int32_t microBatches,
              StageCost cost = {}, bool splitBackward = false,
              const Choice &choice = {});

/// The request for which makePlan returns the plan of `c`.
Request requestOf(const Case &c);

/// The note of the scheme of `c` about its plan, for example that another
/// scheme is better. Empty if there is none.
std::string noteOf(const Case &c);

/// Replaces the schedule of `c` by a new plan for its present problem, with
/// whole or split backwards.
void scheduleAgain(Case &c, bool splitBackward);

/// Options of chimera: the number of pipelines and the concatenation.
inline Options
chimeraWith(int32_t pipelines,
            Concatenation concatenation = Concatenation::Direct) {
  return chooseChimera(pipelines, concatenation);
}

/// All values of chimera's option `concatenation`.
inline constexpr Concatenation kConcatenations[] = {
    Concatenation::Direct, Concatenation::Eager, Concatenation::Doubling,
    Concatenation::FineTunedDoubling, Concatenation::Halving};

/// Every choice that `scheme` accepts with `workers` workers and `workers`
/// micro-batches. For chimera these are all of its options, and for other
/// schemes one to three stages per worker.
std::vector<Choice> choices(const Scheme &scheme, int32_t workers);

/// The concatenation that a choice of chimera's options has. Direct for other
/// schemes.
Concatenation concatenationOf(const Choice &choice);
inline int32_t pipelinesOf(const Choice &choice) {
  return pipelinesOf(choice.options);
}

/// The name of a case, for example "chimera D=4 N=8 2 direct" or
/// "interleaved-1f1b D=4 N=8 2 chunks".
std::string nameOf(const Scheme &scheme, int32_t workers, int32_t microBatches,
                   const Choice &choice);

/// The grid of renderGrid, in slots or in times. Lines have at most `lineWidth`
/// characters; 0 means no limit.
std::string gridOf(const Case &c, const Timing &timing, bool slots,
                   size_t lineWidth = 0);

/// The messages of all violations, one per line.
std::string violationText(const std::vector<Violation> &violations);

} // namespace chimera::schedule

#endif // CHIMERA_TEST_COMPILER_SCHEDULE_SCHEDULES_H
