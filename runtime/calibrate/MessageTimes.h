//===- MessageTimes.h - Costs of a message ----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Measures the three times of a message that the simulator needs: the time for
// which the sender is busy with the message, the time for which the message is
// in flight while both ends do other work, and the time for which the receiver
// is busy with it. As many ranks and messages as in a pipeline are active at
// once.
//
// Ranks sleep when the ranks of a pipeline would compute. From time to time, a
// rank sends a message to its neighbour, which has posted the receive long
// before. If the neighbour already waits when the message is sent, the end of
// its wait gives the duration of the whole message. If the neighbour begins to
// wait later, the duration of its wait shows how long its thread is busy with
// the message. The sender's own time is the duration of its post and, after
// more sleep, of its wait.
//
// If ranks compute on devices that are not hosts, the times are times of their
// queues instead of threads. A message begins when the sender's queue has
// produced it. After that, only the wait takes time of the sender's queue. The
// message ends when the receiver's queue may continue.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CALIBRATE_MESSAGETIMES_H
#define CHIMERA_RUNTIME_CALIBRATE_MESSAGETIMES_H

#include "runtime/calibrate/MeasuredQueue.h"
#include "runtime/channel/Channels.h"
#include "runtime/control/Control.h"

#include <functional>

namespace chimera::runtime {

inline constexpr int64_t kMillisecond = 1'000'000; // in nanoseconds

/// The times in nanoseconds of some messages of one size.
struct MessageTimes {
  std::vector<int64_t> send; ///< time of the sender's thread or queue
  /// The time from the beginning of a message until its receiver may continue:
  /// up for messages to the higher rank, down for messages to the lower rank.
  /// An error in comparing the clocks of the two ranks makes one of them longer
  /// and the other one shorter.
  std::vector<int64_t> up, down;
  std::vector<int64_t> receive; ///< time of the receiver's thread or queue
};

/// The medians of MessageTimes, in nanoseconds. `whole` is the mean of the
/// medians of both directions, or the median of the only direction that has
/// times.
struct MessageCost {
  double send, whole, receive;
  /// The part of `whole` in which neither end is busy.
  double transit() const;
};
MessageCost costOf(const MessageTimes &times);

struct MessageRounds {
  uint64_t bytes; ///< of a message
  int rounds = 64;
  /// A round takes `scale` times 16 ms. A message must not take longer than
  /// about `scale` times 3 ms.
  int64_t scale = 1;
  /// The time in nanoseconds by which this rank's clock is ahead of rank 0's.
  int64_t clockAhead = 0;
  std::chrono::milliseconds timeout;
};

/// Measures messages between neighbours. Adds the times of this rank's messages
/// with `peer` to `timesWith(peer)`. This is a collective call. Requires
/// channels for the memory of the queue's device. Throws the exceptions of
/// waits and the queue.
void measureMessages(
    Control &control, Channels &channels, MeasuredQueue &queue,
    const MessageRounds &rounds,
    const std::function<MessageTimes &(uint32_t peer)> &timesWith);

/// Returns the times of all ranks at rank 0, and nothing at other ranks.
MessageTimes gatherTimes(Control &control, const MessageTimes &own,
                         std::chrono::milliseconds timeout);

/// Sleeps until the steady clock shows `nanoseconds`.
void sleepUntil(int64_t nanoseconds);

/// Returns a time, in nanoseconds of rank 0's clock, at which all ranks can
/// begin together. It is `later` after the current time. This is a collective
/// call.
int64_t agreeOnBegin(Control &control, std::chrono::milliseconds later,
                     std::chrono::milliseconds timeout);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CALIBRATE_MESSAGETIMES_H
