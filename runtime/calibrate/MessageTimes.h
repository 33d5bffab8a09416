//===- MessageTimes.h - Costs of a message ----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Measures the three times of a message that the simulator needs: how long its
// sender is busy with it, how long it is in flight while both ends do other
// work, and how long its receiver is busy with it. The measurement uses as many
// ranks, and as many messages at once, as a pipeline does.
//
// Ranks sleep where a pipeline would compute. Now and then a rank has a message
// for its neighbour. The neighbour posted the receive long before. Either it
// already waits for the message: then the end of its wait gives the duration of
// the whole message. Or it comes later: then the duration of its wait shows how
// long its own thread is busy with the message. The sender's own cost is its
// post and, after more sleep, its wait.
//
// If ranks compute on devices that are not hosts, their queues take the place
// of the threads. A message begins when its sender's queue has produced it.
// After that the sender's queue loses time only by the wait. The message ends
// when its receiver's queue may continue.
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
  /// From the beginning of a message until its receiver may continue, for
  /// messages to the higher and to the lower rank. An error in comparing the
  /// two ranks' clocks makes one longer and the other shorter.
  std::vector<int64_t> up, down;
  std::vector<int64_t> receive; ///< time of the receiver's thread or queue
};

/// The medians, in nanoseconds. `whole` is the mean of both directions.
struct MessageCost {
  double send, whole, receive;
  /// The part of `whole` during which neither end is busy.
  double way() const;
};
MessageCost costOf(const MessageTimes &times);

struct MessageRounds {
  uint64_t bytes; ///< of a message
  int rounds = 64;
  /// A round takes `scale` times 16 ms. A message must not take more than about
  /// `scale` times 3 ms.
  int64_t scale = 1;
  /// The time in nanoseconds by which this rank's clock is ahead of rank 0's.
  int64_t clockAhead = 0;
  std::chrono::milliseconds timeout;
};

/// Measures messages between neighbours and adds the times that this rank saw
/// with `peer` to `timesWith(peer)`. A collective call. Requires channels of
/// the memory of the queue's device. Throws what waits and the queue throw.
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
/// begin together. It is `later` after now. A collective call.
int64_t agreeOnBegin(Control &control, std::chrono::milliseconds later,
                     std::chrono::milliseconds timeout);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CALIBRATE_MESSAGETIMES_H
