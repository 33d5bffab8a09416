//===- StepTime.h - What a whole step takes ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step is not over with its last action: what follows the actions (Tail.h)
// belongs to it. A worker that is done with both begins the next step, whatever
// the other workers still do.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_STEPTIME_H
#define CHIMERA_COMPILER_SCHEDULE_STEPTIME_H

#include "compiler/schedule/Tail.h"

namespace chimera::schedule {

/// What a step takes on average once many run one after another.
struct StepTime {
  double total = 0;
  double actions = 0;   ///< where all-reduces and updates take no time
  double allReduce = 0; ///< what all-reduces add to that, un-overlapped
  double update = 0;    ///< what updates add to both
};

/// Follows steps until what is between the workers repeats, or some dozens; no
/// step is counted with less than its workers or links can do it in. The
/// policy is of no account where steps overlap: then every all-reduce is
/// awaited at once. Requires a valid schedule of one step with a flush, else of
/// two.
StepTime stepTime(const Problem &problem, const Schedule &schedule);

class FlushedSteps;

/// Its total alone, for one policy after another.
class StepPeriods {
public:
  /// Refers to the schedule.
  StepPeriods(const Problem &problem, const Schedule &schedule);
  ~StepPeriods();

  double with(AllReducePolicy policy);

private:
  const Schedule &schedule;
  Problem problem;
  std::unique_ptr<FlushedSteps> steps; ///< null where steps overlap
};

/// True if all-reduces or updates take time.
bool hasTail(const Problem &problem);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_STEPTIME_H
