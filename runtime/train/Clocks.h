//===- Clocks.h - Differences between the ranks' clocks ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A comparison of the ranks' clocks. Each host's steady clock starts at that
// host's boot, so times of different hosts must be converted. The root asks
// each rank for its time, some tens of times. The fastest round trip is the
// most accurate: the rank reads its clock at some moment during the round trip,
// so the error is at most half of the round trip's time.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_CLOCKS_H
#define CHIMERA_RUNTIME_TRAIN_CLOCKS_H

#include "runtime/control/Control.h"

#include <functional>

namespace chimera::runtime {

/// A rank's steady clock.
struct Clock {
  /// Identifies the clock. Two clocks with equal values are the same clock. 0
  /// if unknown.
  uint64_t identity;
  std::function<int64_t()> now; ///< nanoseconds
};

/// The clock of this process. All processes that share the host's clock get the
/// same identity.
Clock clockOfHost();

struct ClockOffset {
  int64_t ahead = 0;    ///< the rank's time minus the root's, in nanoseconds
  int64_t error = 0;    ///< maximum error of `ahead`: half a round trip
  bool isShared = true; ///< same clock as the root's: `ahead` and `error` are 0
};

/// Compares the clocks of all ranks with the clock of `root`. Returns the
/// offsets in rank order at the root, and nothing at the other ranks. Every
/// rank must call this, at a time when the root sends nothing else. Throws
/// WaitError if a wait for another rank exceeds `timeout`.
std::vector<ClockOffset> gatherClocks(Control &control, uint32_t root,
                                      std::chrono::milliseconds timeout,
                                      const Clock &clock = clockOfHost());

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_CLOCKS_H
