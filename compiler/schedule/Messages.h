//===- Messages.h - What passes between workers -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A forward sends its activations to the worker of the next stage, a backward
// or input gradient its gradient to the worker of the stage before. Each such
// message is known by the number of the action that makes it, and exactly one
// action waits for it. Between two stages on one worker nothing is sent.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_MESSAGES_H
#define CHIMERA_COMPILER_SCHEDULE_MESSAGES_H

#include "compiler/schedule/Schedule.h"

namespace chimera::schedule {

/// A message, seen from one of its ends.
struct Message {
  int64_t maker; ///< the number of the action that makes it
  int32_t stage; ///< of the two stages that it passes between, the first
  int32_t peer;  ///< the worker at the other end
};

/// The message that `action` makes, if any.
std::optional<Message> sentBy(const Problem &problem, const ActionIds &ids,
                              const Action &action);

/// The message that `action` waits for, if any. Where its backward is
/// recomputed fused, the recompute waits for the gradient.
std::optional<Message> awaitedBy(const Problem &problem, const ActionIds &ids,
                                 const Action &action);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_MESSAGES_H
