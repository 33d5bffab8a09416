//===- Clock.h - The happens-before relation --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Vector clocks (Fidge 1988, Mattern 1989). In this folder, a thread is a
// queue, or an operation of a channel while it is in flight. The operations of
// a thread are numbered from 1; these numbers are epochs.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DEVICE_SIMULATED_CLOCK_H
#define CHIMERA_RUNTIME_DEVICE_SIMULATED_CLOCK_H

#include <algorithm>
#include <cstdint>
#include <vector>

namespace chimera::runtime::simulated {

/// Identifies an operation by its thread and epoch.
struct Stamp {
  uint32_t thread = 0;
  uint64_t epoch = 0;
};

/// A vector clock. It describes a point in time: for each thread, it has the
/// number of the thread's operations that happened before this point.
class Clock {
public:
  uint64_t of(uint32_t thread) const {
    return thread < epochs.size() ? epochs[thread] : 0;
  }
  /// Whether the operation with this stamp happened before the clock's point in
  /// time.
  bool knows(Stamp stamp) const { return of(stamp.thread) >= stamp.epoch; }

  void learn(Stamp stamp) {
    if (stamp.thread >= epochs.size())
      epochs.resize(stamp.thread + 1);
    epochs[stamp.thread] = std::max(epochs[stamp.thread], stamp.epoch);
  }
  void learn(const Clock &other) {
    if (other.epochs.size() > epochs.size())
      epochs.resize(other.epochs.size());
    for (size_t i = 0; i < other.epochs.size(); ++i)
      epochs[i] = std::max(epochs[i], other.epochs[i]);
  }

private:
  std::vector<uint64_t> epochs;
};

} // namespace chimera::runtime::simulated

#endif // CHIMERA_RUNTIME_DEVICE_SIMULATED_CLOCK_H
