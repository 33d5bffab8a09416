//===- Channels.h - Moves values between ranks ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Messages between two ranks, and all-reduces with a fixed order of summation.
// Messages from one rank to another arrive in the order of the sends; there are
// no tags. All bytes are in device memory.
//
// A post (postSend, postReceive, startAllReduce) starts an operation and
// returns at once. `wait` makes a queue of the device wait for the operation.
// On a host device, the operation begins when it is posted, and `wait` blocks
// the host. On other devices, `wait` and the operation are only enqueued, and
// the host does not wait for the device.
//
// An all-reduce completes only after every member has started it and has
// entered any wait after this start. The wait need not be for the same
// all-reduce: if an implementation needs the host to make progress, every wait
// of a rank drives all operations of the rank.
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

/// Describes all messages and all-reduces of a run. Every rank has the same
/// description, with its lists in the same order.
struct Communication {
  struct Pair {
    uint32_t from, to;
    auto operator<=>(const Pair &) const = default;
  };
  /// Each pair of ranks with a message, once; ascending.
  std::vector<Pair> pairs;
  std::vector<ReduceGroup> groups;
  /// The message model under which the proof found no deadlock in the program.
  /// Channels may execute operations in any order that this model permits.
  program::MessageModel model = program::MessageModel::Rendezvous;
};

/// An operation in flight. The rank waits for every request exactly once, or
/// drops (destroys) it after an error. All memory given to channels must be in
/// blocks (Block.h). If a dropped operation cannot be cancelled, the process
/// frees no block any more. So the rank may free the memory of a dropped
/// request at once.
class Request {
public:
  virtual ~Request() = default;
};

class Channels {
public:
  virtual ~Channels() = default;

  virtual uint32_t rank() const = 0;
  virtual uint32_t ranks() const = 0;

  /// Announces the communication of the run. Requires that all ranks call this
  /// function before their first post. The call may block until all ranks have
  /// called it, and has no timeout. So the caller needs a Watchdog.
  virtual void prepare(const Communication &communication) {
    (void)communication;
  }

  /// Posts a message. The k-th send to a rank matches that rank's k-th receive
  /// from this rank, which must have the same size. The operation begins after
  /// the device has passed the event `after`. From this event until the wait
  /// for the request, the bytes must not be used. A send may remain incomplete
  /// until its receive is posted. Posting never blocks.
  virtual std::unique_ptr<Request> postSend(uint32_t to, ConstBytes bytes,
                                            Event after = {}) = 0;
  virtual std::unique_ptr<Request> postReceive(uint32_t from, Bytes bytes,
                                               Event after = {}) = 0;

  /// Posts a message of the whole block `memory`, which has `size` bytes. After
  /// the wait, the sender's block has undefined contents. If the sender uses
  /// postSendBlock and the receiver uses postReceiveBlock, channels of host
  /// memory may exchange the two blocks instead of copying the bytes. So the
  /// object `memory` must not be used until the wait.
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

  /// Starts an all-reduce over `group` after the device has passed the event
  /// `after`. This rank must be a member. `contributions` are the contributions
  /// of this rank, in the group's order. Each has the size of `sum`, and `sum`
  /// may be one of them. All members must start the all-reduces of a group in
  /// the same order. The result is the left fold in the group's order. It is
  /// equal to the last bit on all channels, except on channels that were
  /// created to use the sum of their transport (MPI_Iallreduce). None of the
  /// memory may be used until the wait.
  virtual std::unique_ptr<Request>
  startAllReduce(const ReduceGroup &group, ElementType type,
                 std::vector<ConstBytes> contributions, Bytes sum,
                 Event after = {}) = 0;

  /// If the message model has streams, the posts between beginGroup and
  /// endGroup take effect as one operation, as between ncclGroupStart and
  /// ncclGroupEnd.
  virtual void beginGroup() {}
  virtual void endGroup() {}

  /// A hint: the rank starts to compute and will not call the channels until
  /// its next wait. Threads of the channels may make progress in the meantime.
  virtual void beginComputing() {}

  /// Makes operations that are enqueued on `queue` after this call take effect
  /// only after `request` is complete.
  ///
  /// On a host device, this call blocks until the request is complete. It
  /// throws WaitError if `timeout` passes first or if the run is aborted.
  ///
  /// On other devices, this call does not wait for the device. If `request`
  /// never completes, a later wait of the host for the queue times out. The
  /// channels of cuda/ block until the hosts of the other ranks have posted
  /// their part, and throw WaitError as on a host device.
  virtual void wait(Queue &queue, std::unique_ptr<Request> request,
                    std::chrono::milliseconds timeout) = 0;

  /// The library calls in which the threads of this rank are now. There is one
  /// element for each thread that calls a library without timeouts, such as
  /// MPI. Empty if no post or wait can hang in a library. Any thread may call
  /// it.
  virtual std::vector<CallMark::Call> callsInFlight() const { return {}; }

  /// Makes every wait of this rank throw, and in some implementations the waits
  /// of other ranks. Any thread may call it, any number of times. Only the
  /// first call sets the reason.
  virtual void abort(const std::string &reason) = 0;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CHANNEL_CHANNELS_H
