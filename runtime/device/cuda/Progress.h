//===- Progress.h - Reports the progress of a GPU ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DEVICE_CUDA_PROGRESS_H
#define CHIMERA_RUNTIME_DEVICE_CUDA_PROGRESS_H

#include "runtime/device/Device.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace chimera::runtime::cuda {

/// A thread that watches events and reports the GPU's progress. The rank's own
/// thread cannot do this: it is putting operations on queues, or it is blocked
/// because a queue is full.
class Progress {
public:
  /// `isDone` tells whether an event has passed, and throws if the device has
  /// failed.
  Progress(Device::Listener listener,
           std::function<bool(const Event &)> isDone);
  ~Progress();

  /// Adds the event after the operations of an instruction. Requires that
  /// events are added in the order in which they pass.
  void add(uint64_t step, uint32_t instruction, Event event);

private:
  struct Point {
    uint64_t step;
    uint32_t instruction;
    Event event;
  };
  void look();
  bool lookAt(Point point, std::unique_lock<std::mutex> &lock);

  const Device::Listener listener;
  const std::function<bool(const Event &)> isDone;
  std::mutex mutex; ///< protects the members below
  std::condition_variable changed;
  std::deque<Point> points; ///< that may not have passed; oldest first
  bool ends = false;
  std::thread thread;
};

} // namespace chimera::runtime::cuda

#endif // CHIMERA_RUNTIME_DEVICE_CUDA_PROGRESS_H
