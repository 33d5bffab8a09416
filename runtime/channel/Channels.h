//===- Channels.h - What moves values between ranks -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Messages between pairs of ranks, first in first out and without tags, and
// ordered all-reduces, of memory of a device. A post says what is to be moved
// and returns at once; its wait orders a queue behind the move. On a device
// that is not the host both take effect later, and the host never waits for a
// device.
//
// An all-reduce needs nothing but that every member has started it and is in
// some wait or gets to one: where channels need the members' help for that,
// every wait of the host drives all operations of its rank.
//
// One object serves one rank and is called by one thread at a time, but for
// abort. Implementations: InProcess.h, cuda/, mpi/, nccl/, simulated/ and tcp/.
// One conformance suite runs on all.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_CHANNELS_H
#define CHIMERA_RUNTIME_CHANNEL_CHANNELS_H

#include "runtime/channel/ReduceGroup.h"
#include "runtime/device/Device.h"
#include "runtime/program/Program.h"
#include "runtime/system/CallMark.h"
#include "runtime/system/WaitError.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace chimera::runtime {

/// All that the ranks of a run will communicate, in the same order everywhere.
struct Communication {
  struct Pair {
    uint32_t from, to;
    auto operator<=>(const Pair &) const = default;
  };
  std::vector<Pair> pairs; ///< that send messages, each once, ascending
  std::vector<ReduceGroup> groups;
  /// Under which the program was proven: channels may order operations by it.
  program::MessageModel model = program::MessageModel::Rendezvous;
};

/// An operation in flight. Requests are waited for exactly once or, after an
/// error, dropped. The memory of a dropped request may be freed if it is in
/// blocks: those are kept where the request cannot be ended (see Block.h). So
/// all memory that is given to channels is in blocks.
class Request {
public:
  virtual ~Request() = default;
};

class Channels {
public:
  virtual ~Channels() = default;

  virtual uint32_t rank() const = 0;
  virtual uint32_t ranks() const = 0;

  /// Tells what there will be, before the first post. All ranks of the run call
  /// it together; it may block until they do, and knows no timeout: the caller
  /// needs a Watchdog.
  virtual void prepare(const Communication &communication) {
    (void)communication;
  }

  /// The k-th send to a rank is received by its k-th receive from this one,
  /// which must have the same size. The operation begins when `after` has
  /// passed; from then to the wait the bytes are the channels', which for a
  /// send may last until its receive is posted. Posting never blocks.
  virtual std::unique_ptr<Request> postSend(uint32_t to, ConstBytes bytes,
                                            Event after = {}) = 0;
  virtual std::unique_ptr<Request> postReceive(uint32_t from, Bytes bytes,
                                               Event after = {}) = 0;

  /// The same of all bytes of `memory`, `size` of them. After its wait a send
  /// leaves anything in them. Where both ends of a message are such, channels
  /// of host memory may exchange the blocks instead of copying: until the wait
  /// `memory` itself is the channels' too.
  virtual std::unique_ptr<Request> handOver(uint32_t to, Block &memory,
                                            uint64_t size, Event after = {}) {
    return postSend(to, {memory.get(), size}, after);
  }
  virtual std::unique_ptr<Request> takeOver(uint32_t from, Block &memory,
                                            uint64_t size, Event after = {}) {
    return postReceive(from, {memory.get(), size}, after);
  }

  /// Starts an all-reduce over `group`, of which this rank is a member, after
  /// `after`. `contributions` are this rank's, in the group's order, all of the
  /// size of `sum`, which may be one of them. Members start the all-reduces of
  /// a group in the same order. The result is the declared fold, to the last
  /// bit, on all channels that were not asked to sum in their own way. All
  /// bytes stay the channels' until the wait.
  virtual std::unique_ptr<Request>
  startAllReduce(const ReduceGroup &group, ElementType type,
                 std::vector<ConstBytes> contributions, Bytes sum,
                 Event after = {}) = 0;

  /// Posts between the two take effect together, as one operation where the
  /// model of messages is one of streams.
  virtual void beginGroup() {}
  virtual void endGroup() {}

  /// The rank is about to compute: until its next wait it leaves the channels
  /// alone, whose own threads may move meanwhile what is in flight (a hint,
  /// without which they need not).
  virtual void computing() {}

  /// Has what is put on `queue` from now on take effect after `request` is
  /// complete. A queue of the host executes at once, so there this blocks until
  /// then, and throws WaitError when `timeout` passes first or the run is
  /// aborted. Elsewhere it never waits for a device: an operation that does not
  /// complete shows in events of the queue. Channels of cuda/ block until the
  /// hosts of the other ranks have posted their part, and throw as on the host.
  virtual void wait(Queue &queue, std::unique_ptr<Request> request,
                    std::chrono::milliseconds timeout) = 0;

  /// For each thread of this rank that calls a library without timeouts, the
  /// call that it makes now. Empty if waits and posts always come back in time.
  /// Any thread may call it.
  virtual std::vector<CallMark::Seen> callsUnderWay() const { return {}; }

  /// Makes every wait of this rank throw, and perhaps those of others. Any
  /// thread may call it, more than once; the first reason counts.
  virtual void abort(const std::string &reason) = 0;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CHANNEL_CHANNELS_H
