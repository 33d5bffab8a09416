//===- MessageTimes.h - What a message costs two ranks ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The three times of a message that the simulator asks for: how long its sender
// is busy with it, how long it is under way while both ends do other things,
// and how long its receiver is busy with it. They are measured with as many
// ranks, and as many of them at once, as a pipeline has.
//
// Ranks sleep, as they compute in a pipeline, and now and then one has a
// message for its neighbour, who posted its receive long before and either
// waits for it already (its end then tells what the message takes altogether)
// or comes later (the wait then tells how long the receiver's own thread is
// busy with it). What the sender itself spends is its post and, after more
// sleep, its wait.
//
// Where ranks compute on other devices, it is their queues that are busy, or
// go: a message begins when its sender's queue has made it, which then loses
// time by the wait alone, and ends when its receiver's queue may go on.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CALIBRATE_MESSAGETIMES_H
#define CHIMERA_RUNTIME_CALIBRATE_MESSAGETIMES_H

#include "runtime/calibrate/MeasuredQueue.h"
#include "runtime/channel/Channels.h"
#include "runtime/control/Control.h"

#include <functional>

namespace chimera::runtime {

/// How long some messages of one size took, in nanoseconds.
struct MessageTimes {
  std::vector<int64_t> send; ///< the sender's thread, or queue
  /// From the sender's end to the receiver's go, to the higher rank and to the
  /// lower one: what two clocks are apart is more in one and less in the other.
  std::vector<int64_t> up, down;
  std::vector<int64_t> receive; ///< the receiver's thread, or queue
};

/// The medians of these, of which the whole is the mean of both ways.
struct MessageCost {
  double send, whole, receive;
  /// What of the whole neither end's own thread, or queue, is busy with.
  double way() const;
};
MessageCost costOf(const MessageTimes &times);

struct MessageRounds {
  uint64_t bytes; ///< of a message
  int rounds = 64;
  /// A round takes so many times 16 ms. A message must not take more than some
  /// 3 ms times that.
  int64_t scale = 1;
  /// How many nanoseconds this rank's clock shows more than rank 0's.
  int64_t ahead = 0;
  std::chrono::milliseconds timeout;
};

/// Adds the times that this rank saw of its messages with `peer` to
/// `timesWith(peer)`. Every rank calls it. The channels are of memory of the
/// queue's device. Throws what waits and the queue throw.
void measureMessages(
    Control &control, Channels &channels, MeasuredQueue &queue,
    const MessageRounds &rounds,
    const std::function<MessageTimes &(uint32_t peer)> &timesWith);

/// Those of all ranks at rank 0, and nothing elsewhere.
MessageTimes gatherTimes(Control &control, const MessageTimes &own,
                         std::chrono::milliseconds timeout);

/// Waits without computing until the steady clock shows so much.
void sleepUntil(int64_t nanoseconds);

/// A moment so much later, in nanoseconds of rank 0's clock, at which all ranks
/// can begin together. Every rank calls it.
int64_t agreeOnBegin(Control &control, std::chrono::milliseconds later,
                     std::chrono::milliseconds timeout);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CALIBRATE_MESSAGETIMES_H
