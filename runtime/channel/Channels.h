//===- Channels.h - Moves values between ranks ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Messages between pairs of ranks, first in, first out and without tags, and
// all-reduces with a fixed order of summation. Both work on device memory. A
// post starts an operation and returns at once. Its wait makes a queue wait for
// the operation. On a host device, the operation begins at once and the wait
// blocks the host. On other devices both are only enqueued, and the host does
// not wait for the device.
//
// An all-reduce completes after every member has started it and has then
// entered any wait. The wait need not be for this all-reduce: if an
// implementation needs the host to make progress, every wait of the host drives
// all operations of its rank.
//
// One object serves one rank. Only one thread at a time may call it, except for
// abort and callsInFlight. Implementations are InProcess.h, cuda/, mpi/, nccl/,
// simulated/ and tcp/. One conformance suite (test/runtime/channel) runs on all
// of them.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_CHANNELS_H
#define CHIMERA_RUNTIME_CHANNEL_CHANNELS_H

#include "runtime/channel/ReduceGroup.h"
#include "runtime/device/Device.h"
#include "runtime/program/Program.h"
#include "runtime/system/CallMark.h"
#include "runtime/system/Deadline.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace chimera::runtime {

/// All communication of a run, in the same order on every rank.
struct Communication {
  struct Pair {
    uint32_t from, to;
    auto operator<=>(const Pair &) const = default;
  };
  std::vector<Pair> pairs; ///< that exchange messages; each once, ascending
  std::vector<ReduceGroup> groups;
  /// The model under which the program was proven free of deadlock. Channels
  /// may execute operations in the order that this model permits.
  program::MessageModel model = program::MessageModel::Rendezvous;
};

/// An operation in flight. Every request is waited for exactly once or, after
/// an error, dropped. All memory given to channels must be in blocks: the
/// memory of a dropped request may then be freed at once, because blocks are
/// kept if the operation cannot be cancelled (see Block.h).
class Request {
public:
  virtual ~Request() = default;
};

class Channels {
public:
  virtual ~Channels() = default;

  virtual uint32_t rank() const = 0;
  virtual uint32_t ranks() const = 0;

  /// Announces the communication of the run. A collective call, made by all
  /// ranks before their first post. It may block until all ranks call it and
  /// has no timeout, so the caller needs a Watchdog.
  virtual void prepare(const Communication &communication) {
    (void)communication;
  }

  /// Posts a message. The k-th send to a rank matches that rank's k-th receive
  /// from this rank, which must have the same size. The operation begins after
  /// `after` has passed. The bytes must not be used from then until the wait. A
  /// send may not complete before its receive is posted. Posting never blocks.
  virtual std::unique_ptr<Request> postSend(uint32_t to, ConstBytes bytes,
                                            Event after = {}) = 0;
  virtual std::unique_ptr<Request> postReceive(uint32_t from, Bytes bytes,
                                               Event after = {}) = 0;

  /// Posts a message of the whole block `memory` of `size` bytes. After its
  /// wait, the sender's block has undefined contents. If the sender uses
  /// postSendBlock and the receiver uses postReceiveBlock, channels of host
  /// memory may exchange the two blocks instead of copying. So the object
  /// `memory` must not be used until the wait.
  virtual std::unique_ptr<Request>
  postSendBlock(uint32_t to, Block &memory, uint64_t size, Event after = {}) {
    return postSend(to, {memory.get(), size}, after);
  }
  virtual std::unique_ptr<Request> postReceiveBlock(uint32_t from,
                                                    Block &memory,
                                                    uint64_t size,
                                                    Event after = {}) {
    return postReceive(from, {memory.get(), size}, after);
  }

  /// Starts an all-reduce over `group` after the event `after`. This rank must
  /// be a member. `contributions` are the contributions of this rank, in the
  /// group's order. Each has the size of `sum`, and `sum` may be one of them.
  /// All members must start the all-reduces of a group in the same order. The
  /// result is the left fold in the group's order. It is equal to the last bit
  /// on all channels, unless the channels were created to use the transport's
  /// own sum. None of the memory may be used until the wait.
  virtual std::unique_ptr<Request>
  startAllReduce(const ReduceGroup &group, ElementType type,
                 std::vector<ConstBytes> contributions, Bytes sum,
                 Event after = {}) = 0;

  /// The posts between beginGroup and endGroup take effect as one operation if
  /// the message model has streams.
  virtual void beginGroup() {}
  virtual void endGroup() {}

  /// A hint that the rank starts to compute and will not call the channels
  /// until its next wait. Threads of the channels may make progress in the
  /// meantime.
  virtual void beginComputing() {}

  /// Makes operations that are enqueued on `queue` after this call take effect
  /// only after `request` is complete. On a host device this blocks until the
  /// request is complete, and throws WaitError if `timeout` passes first or the
  /// run is aborted. On other devices it does not wait for the device. If the
  /// operation never completes there, a wait for a later event of the queue
  /// times out. The channels of cuda/ block until the hosts of the other ranks
  /// have posted their part, and throw as on a host device.
  virtual void wait(Queue &queue, std::unique_ptr<Request> request,
                    std::chrono::milliseconds timeout) = 0;

  /// The library call that each thread of this rank is in, for threads that
  /// call a library without timeouts. Empty if no post or wait can hang in a
  /// library. Any thread may call it.
  virtual std::vector<CallMark::Call> callsInFlight() const { return {}; }

  /// Makes every wait of this rank throw, and perhaps the waits of other ranks.
  /// Any thread may call it, any number of times. The first reason counts.
  virtual void abort(const std::string &reason) = 0;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CHANNEL_CHANNELS_H
