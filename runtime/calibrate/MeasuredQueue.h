//===- MeasuredQueue.h - Times at a rank's queue ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The simulator's times are times of the queue on which a rank computes. On a
// host, the queue executes every operation immediately, so these times are the
// durations of calls.
//
// The queue of another device executes later. In a run, the host is ahead of
// this queue: while the queue computes, the host enqueues the next messages and
// sums, so enqueueing takes none of the queue's time. So a measurement first
// gives the queue some work. While the queue does this work, the host enqueues
// the operation to be measured. The measured time begins when the queue reaches
// this operation.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CALIBRATE_MEASUREDQUEUE_H
#define CHIMERA_RUNTIME_CALIBRATE_MEASUREDQUEUE_H

#include "runtime/device/Device.h"
#include "runtime/interpreter/Status.h"

namespace chimera::runtime {

/// A point of a queue, and the time at which it was recorded.
struct Moment {
  Event event = {};
  int64_t byHost = 0; ///< when the host recorded it, in steadyNanoseconds
};

class MeasuredQueue {
public:
  /// If the device executes later, allocates 64 MiB on it. Waits throw
  /// WaitError after `timeout`. All functions throw the exceptions of the
  /// device.
  MeasuredQueue(Device &device, std::chrono::milliseconds timeout);

  Queue &get() { return *queue; }
  bool isSynchronous() const { return atOnce; }
  /// Memory of the device, filled with zeros.
  Block zeros(uint64_t bytes);

  // On hosts these functions only read the clock, because a message between
  // ranks of one host may take only a microsecond.

  /// Records the point after all operations that are on the queue.
  Moment recordPoint() {
    return atOnce ? Moment{.byHost = steadyNanoseconds()} : record();
  }
  /// Like recordPoint. If the device executes later, puts some work on the
  /// queue first.
  Moment afterWork() {
    if (!atOnce)
      putWork();
    return recordPoint();
  }
  /// Waits until the queue has passed the point. Returns the time at which the
  /// queue passed it, in steadyNanoseconds.
  int64_t timeOf(const Moment &moment) {
    return atOnce ? moment.byHost : waitFor(moment.event);
  }
  /// The time in nanoseconds for which the operations that `call` enqueues keep
  /// the queue from other work.
  template <typename Call> int64_t timeOccupiedBy(const Call &call) {
    if (atOnce) {
      const int64_t begin = steadyNanoseconds();
      call();
      return steadyNanoseconds() - begin;
    }
    putWork();
    const Event begin = queue->recordTime();
    call();
    const Event end = queue->recordTime();
    waitFor(end);
    return device.nanosecondsBetween(begin, end);
  }

private:
  Moment record();
  void putWork();
  int64_t waitFor(const Event &event);

  Device &device;
  const bool atOnce;
  const std::chrono::milliseconds timeout;
  Block zeroed; ///< memory that the work sets to zero
  Bytes work;
  uint32_t workCount = 1;
  const std::unique_ptr<Queue> queue;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CALIBRATE_MEASUREDQUEUE_H
