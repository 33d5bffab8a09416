//===- Windows.h - Windows of receives --------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The number of receives that are posted ahead. A channel has all messages from
// one worker to another. Its window is the largest number of receives that are
// posted but not complete. With a window of k, the first k receives are posted
// at the start. Each later receive is posted when the message k places earlier
// has been received. The flight of a message begins only when its send and its
// receive have been posted. So a small window may delay messages that are sent
// early, and a large window needs memory. The messages of a channel are
// numbered in the order of the sending worker's actions.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SIMULATE_WINDOWS_H
#define CHIMERA_COMPILER_SCHEDULE_SIMULATE_WINDOWS_H

#include "compiler/schedule/simulate/Simulate.h"

#include <limits>

namespace chimera::schedule {

/// The messages of a schedule, by channel. Keeps references to problem and
/// schedule. Requires a valid schedule.
class Windows {
public:
  Windows(const Problem &problem, const Schedule &schedule);

  /// The smallest window without deadlock, at least 1. If a worker receives a
  /// message before d messages that were sent earlier on the channel, the
  /// receives of all these messages are outstanding at once. So the window must
  /// be at least d + 1.
  int32_t minWindow() const;

  /// The timing with windows of size `window`. If `widened`, a channel that
  /// needs a larger window to avoid deadlock has that larger window. The
  /// critical path is not computed. The timing is incomplete exactly if
  /// `window` is below minWindow() and not widened.
  Timing simulate(int32_t window, bool widened) const;

  /// The smallest window whose makespan is as short as with a window of `most`,
  /// with `widened` windows in both cases. It is 1 if messages have no time in
  /// flight. Requires that `most` is at least 1.
  int32_t
  fastestWindow(int32_t most = std::numeric_limits<int32_t>::max()) const;

  /// The largest number of messages on a channel. A larger window has the same
  /// effect as a window of this size.
  int32_t maxMessages() const;

  /// For each worker, the bytes of its outstanding receives if all windows are
  /// full.
  std::vector<int64_t> bytes(int32_t window, bool widened) const;

private:
  struct Channel {
    int32_t worker; ///< the receiver
    int32_t needed = 1;
    int32_t messages = 0;
    int64_t bytes = 0; ///< of the largest message
  };

  int32_t windowOf(const Channel &channel, int32_t window, bool widened) const;

  const Problem &problem;
  const Schedule &schedule;
  std::vector<Channel> channels;
  ReceiveWindows numbers;
};

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SIMULATE_WINDOWS_H
