//===- Messages.h - Messages between workers --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The messages of a problem. A forward sends its activations to the worker of
// the next stage. A backward or input gradient sends its gradient to the worker
// of the stage before. A message is identified by the id of the action that
// produces it, and exactly one action waits for it. Stages on the same worker
// exchange no messages.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_MESSAGES_H
#define CHIMERA_COMPILER_SCHEDULE_MESSAGES_H

#include "compiler/schedule/Schedule.h"

namespace chimera::schedule {

/// A message, seen from one of its two workers.
struct Message {
  int64_t producer; ///< id of the action that produces it
  int32_t stage;    ///< the lower of the two stages that it connects
  int32_t peer;     ///< the worker at the other end
};

/// The message that `action` produces, if any.
std::optional<Message> sentBy(const Problem &problem, const ActionIds &ids,
                              const Action &action);

/// The message that `action` waits for, if any. If a stage has fused
/// recomputes, the recompute waits for the gradient; the backward does not.
std::optional<Message> awaitedBy(const Problem &problem, const ActionIds &ids,
                                 const Action &action);

/// The channel of each message, its number on that channel, and the window of
/// each channel: how many receives may be outstanding (Windows.h). A message is
/// found by the id of the action that produces it.
struct MessageNumbers {
  std::vector<int32_t> channel; ///< -1 for an action without a message
  std::vector<int32_t> number;  ///< of the message on its channel
  std::vector<int32_t> windows; ///< of each channel
};

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_MESSAGES_H
