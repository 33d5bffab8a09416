//===- MeasuredQueue.h - When a rank's queue gets where ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The simulator's times are those of the queue on which a rank computes. The
// queue of a host executes at once, so there they are the times of the calls.
//
// The queue of another device executes later. In a run the host is ahead: while
// the queue computes, it is told of the messages and sums that follow, and
// telling it takes none of its time. So here it is first given work that lasts
// until it has been told of what is measured, and what counts is when the queue
// gets there.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CALIBRATE_MEASUREDQUEUE_H
#define CHIMERA_RUNTIME_CALIBRATE_MEASUREDQUEUE_H

#include "runtime/device/Device.h"
#include "runtime/interpreter/Status.h"

namespace chimera::runtime {

/// A point of a queue.
struct Moment {
  Event event = {};
  int64_t byHost = 0; ///< when a host was there, in steadyNanoseconds
};

class MeasuredQueue {
public:
  /// Takes 64 MiB of a device that executes later. Its waits time out, and all
  /// functions throw what the device throws.
  MeasuredQueue(Device &device, std::chrono::milliseconds timeout);

  Queue &get() { return *queue; }
  bool executesAtOnce() const { return atOnce; }
  /// Memory of the device that holds zeros.
  Block zeros(uint64_t bytes);

  // For hosts these are no more than their clock: a message may take a
  // microsecond there.

  /// The point behind all that is on the queue.
  Moment here() {
    return atOnce ? Moment{.byHost = steadyNanoseconds()} : record();
  }
  /// The same, behind some work for a device that executes later.
  Moment behindWork() {
    if (!atOnce)
      putWork();
    return here();
  }
  /// Waits until the queue has passed the point and returns when it did, in
  /// steadyNanoseconds.
  int64_t timeOf(const Moment &moment) {
    return atOnce ? moment.byHost : waitFor(moment.event);
  }
  /// For how many nanoseconds the queue does nothing else because of what
  /// `call` puts on it.
  template <typename Call> int64_t occupiedBy(const Call &call) {
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
  Block zeroed; ///< by the work
  Bytes work;
  uint32_t workCount = 1;
  const std::unique_ptr<Queue> queue;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CALIBRATE_MEASUREDQUEUE_H
