//===- Occupations.h - When messages occupy workers -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The times for which messages occupy workers (Link in Network.h). A send
// follows the action that produces the message. A receive precedes the action
// that waits for the message. The times of sends and receives are computed from
// a simulated timing and shown in timelines.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_OCCUPATIONS_H
#define CHIMERA_COMPILER_SCHEDULE_OCCUPATIONS_H

#include "compiler/schedule/Timing.h"

namespace chimera::schedule {

/// The time for which a worker sends or receives one message.
struct Occupation : Span {
  int32_t index; ///< of the action at this end, in its worker's order
  int32_t peer;  ///< the worker at the other end
  bool isSend;
};

/// By worker, in the order of its actions.
using Occupations = std::vector<std::vector<Occupation>>;

/// All occupations that take time. Requires that `timing` is complete and is
/// the result of `simulate` for `problem` and `schedule`.
Occupations messageOccupationsOf(const Problem &problem,
                                 const Schedule &schedule,
                                 const Timing &timing);

/// For each worker, the total time for which messages occupy it.
std::vector<int64_t> totalsOf(const Occupations &occupations);

/// True if some message occupies some worker.
bool hasOccupations(const Occupations &occupations);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_OCCUPATIONS_H
