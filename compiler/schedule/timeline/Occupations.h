//===- Occupations.h - When messages occupy workers -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The ends of a message may take time of its two workers (Link in Problem.h): a
// send follows the action that makes the message, a receive precedes the action
// that awaits it. When both were follows from a simulated timing. Timelines
// show them.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_OCCUPATIONS_H
#define CHIMERA_COMPILER_SCHEDULE_OCCUPATIONS_H

#include "compiler/schedule/StepTime.h"

namespace chimera::schedule {

/// The time in which a worker sends or receives one message.
struct Occupation : Tail::Span {
  int32_t index; ///< in its worker's order, of the action at this end
  int32_t peer;  ///< the worker at the other end
  bool isSend;
};

/// Of each worker, in its order.
using Occupations = std::vector<std::vector<Occupation>>;

/// The occupations that take time. Requires that `timing` is complete and that
/// `simulate` made it, whose messages take what `problem` says.
Occupations occupationsOf(const Problem &problem, const Schedule &schedule,
                          const Timing &timing);

/// What messages take of each worker, in all.
std::vector<int64_t> totalsOf(const Occupations &occupations);

/// True if some message occupies some worker.
bool areAny(const Occupations &occupations);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_OCCUPATIONS_H
