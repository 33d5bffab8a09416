//===- Transport.h - What moves bytes between ranks -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Point-to-point channels (an ordered pair of ranks, first in first out, no
// tags) and ordered all-reduces, all nonblocking: a post returns at once and
// its wait completes it. An all-reduce needs nothing but that every member has
// started it and is in some wait or gets to one: where a transport needs the
// members' help for that, every wait drives all of its rank's operations.
//
// One object serves one rank and is called by one thread at a time, but for
// abort. Implementations: InProcess.h, mpi/. One conformance suite runs on all.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRANSPORT_TRANSPORT_H
#define CHIMERA_RUNTIME_TRANSPORT_TRANSPORT_H

#include "runtime/stage/Stage.h"
#include "runtime/transport/Block.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace chimera::runtime {

/// A communication that did not complete: it timed out, a peer is gone, or the
/// run was aborted elsewhere.
class TransportError : public std::runtime_error {
public:
  enum class Reason { TimedOut, Aborted };
  TransportError(Reason reason, const std::string &message)
      : std::runtime_error(message), reason(reason) {}
  Reason reason;
};

/// A group of ranks that sum. The sum is the left fold over `contributions`,
/// each the rank that gives it; a rank may give several. `id` is equal at all
/// members and different for different groups.
struct ReduceGroup {
  uint32_t id;
  std::vector<uint32_t> contributions;
};

/// An operation in flight. Requests are waited for exactly once or, after an
/// error, dropped. The memory of a dropped request may be freed if it is in
/// blocks: those are kept where the request cannot be ended (see Block.h). So
/// all memory that is given to a transport is in blocks.
class Request {
public:
  virtual ~Request() = default;
};

class Transport {
public:
  virtual ~Transport() = default;

  virtual uint32_t rank() const = 0;
  virtual uint32_t ranks() const = 0;

  /// The k-th send to a rank is received by its k-th receive from this one,
  /// which must have the same size. The bytes stay the transport's until the
  /// wait, which for a send may last until its receive is posted. Posting never
  /// blocks.
  virtual std::unique_ptr<Request> postSend(uint32_t to, ConstBytes bytes) = 0;
  virtual std::unique_ptr<Request> postReceive(uint32_t from, Bytes bytes) = 0;

  /// The same of all bytes of `memory`, `size` of them. After its wait a send
  /// leaves anything in them. Where both ends of a message are such, the
  /// transport may exchange their memory instead of copying: until the wait
  /// `memory` itself is the transport's too.
  virtual std::unique_ptr<Request> handOver(uint32_t to, Block &memory,
                                            uint64_t size) {
    return postSend(to, {memory.get(), size});
  }
  virtual std::unique_ptr<Request> takeOver(uint32_t from, Block &memory,
                                            uint64_t size) {
    return postReceive(from, {memory.get(), size});
  }

  /// Tells of groups before the first all-reduce: where a transport sums in a
  /// way of its own, it does so for these only. All ranks of the run call it
  /// together, with the same groups; it may block until they do, and knows no
  /// timeout: the caller needs a Watchdog.
  virtual void prepare(std::span<const ReduceGroup> groups) { (void)groups; }

  /// Starts an all-reduce over `group`, of which this rank is a member.
  /// `contributions` are this rank's, in the group's order, all of the size of
  /// `sum`, which may be one of them. Members start the all-reduces of a group
  /// in the same order. The result is the declared fold, to the last bit, on
  /// every transport that was not asked to sum in its own way. All bytes stay
  /// the transport's until the wait.
  virtual std::unique_ptr<Request>
  startAllReduce(const ReduceGroup &group, ElementType type,
                 std::vector<ConstBytes> contributions, Bytes sum) = 0;

  /// Posts between the two take effect together (a hint that only stream
  /// transports need).
  virtual void beginGroup() {}
  virtual void endGroup() {}

  /// The rank is about to compute: until its next wait it leaves the transport
  /// alone, whose own threads may move meanwhile what is in flight (a hint,
  /// without which they need not).
  virtual void computing() {}

  /// Completes `request`. Throws TransportError when `timeout` passes first or
  /// the run is aborted.
  virtual void wait(std::unique_ptr<Request> request,
                    std::chrono::milliseconds timeout) = 0;

  /// Makes every wait of every rank that can be reached throw. Any thread may
  /// call it, more than once; the first reason counts.
  virtual void abort(const std::string &reason) = 0;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRANSPORT_TRANSPORT_H
