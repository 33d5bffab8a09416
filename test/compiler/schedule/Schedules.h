//===- Schedules.h - Problems and schedules to test with --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_COMPILER_SCHEDULE_SCHEDULES_H
#define CHIMERA_TEST_COMPILER_SCHEDULE_SCHEDULES_H

#include "compiler/schedule/Registry.h"
#include "compiler/schedule/Simulate.h"
#include "compiler/schedule/Verify.h"
#include "compiler/schedule/families/Chimera.h"

#include <string>
#include <vector>

namespace chimera::schedule {

/// Choices besides the sizes: a scheme's options (its defaults if empty), and
/// the number of stages of a pipeline that each worker has.
struct Choice {
  Options options;
  int32_t chunks;

  Choice(Options options = {}, int32_t chunks = 1)
      : options(std::move(options)), chunks(chunks) {}
};

/// A scheme for D workers and N micro-batches, with equal stages.
struct Case {
  const Scheme *scheme;
  Choice choice;
  Problem problem;
  Schedule schedule;
};

Request requestFor(const Scheme &scheme, int32_t workers, int32_t microBatches,
                   const Choice &choice = {}, StageCost cost = {},
                   bool splitBackward = false);

/// The reason why the scheme cannot have these sizes. Empty if it can.
std::string planError(const Scheme &scheme, int32_t workers,
                      int32_t microBatches, const Choice &choice = {});
inline bool canDo(const Scheme &scheme, int32_t workers, int32_t microBatches,
                  const Choice &choice = {}) {
  return planError(scheme, workers, microBatches, choice).empty();
}

/// Requires that the scheme exists and can have these sizes.
Case makeCase(const std::string &scheme, int32_t workers, int32_t microBatches,
              StageCost cost = {}, bool splitBackward = false,
              const Choice &choice = {});

/// The request whose answer is the plan of `c`.
Request requestOf(const Case &c);

/// The scheme's note about its plan.
std::string noteOf(const Case &c);

/// Makes the plan of `c` again, for its present problem, with whole or split
/// backwards.
void replan(Case &c, bool splitBackward);

/// Options of chimera with 2f pipelines and a concatenation.
inline Options choose(int32_t pipelines,
                      Concatenation concatenation = Concatenation::Direct) {
  return chooseChimera(pipelines, concatenation);
}

/// All values of the option.
inline constexpr Concatenation kConcatenations[] = {
    Concatenation::Direct, Concatenation::Eager, Concatenation::Doubling,
    Concatenation::FineTunedDoubling, Concatenation::Halving};

/// Every choice that `scheme` accepts with `workers` workers and as many
/// micro-batches: chimera's options, or one to three chunks.
std::vector<Choice> choices(const Scheme &scheme, int32_t workers);

/// The concatenation of a choice of chimera's options, Direct for any other
/// scheme.
Concatenation concatenationOf(const Choice &choice);
inline int32_t pipelinesOf(const Choice &choice) {
  return pipelinesOf(choice.options);
}

/// The name of a case, for example "chimera D=4 N=8 2 direct" or
/// "interleaved-1f1b D=4 N=8 2 chunks".
std::string nameOf(const Scheme &scheme, int32_t workers, int32_t microBatches,
                   const Choice &choice);

/// The grid in slots or in times. If `lineWidth` is 0, lines may have any
/// length.
std::string gridOf(const Case &c, const Timing &timing, bool slots,
                   size_t lineWidth = 0);

/// The messages of all violations, a line each.
std::string messages(const std::vector<Violation> &violations);

} // namespace chimera::schedule

#endif // CHIMERA_TEST_COMPILER_SCHEDULE_SCHEDULES_H
