//===- Clocks.h - How far ranks' clocks are apart ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The steady clock of a host begins when the host does, so times of ranks on
// several hosts say nothing of each other before their clocks are compared. Of
// some tens of round trips the fastest tells most: the rank read its clock at
// some moment of it, so in its middle to half of its time.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_CLOCKS_H
#define CHIMERA_RUNTIME_TRAIN_CLOCKS_H

#include "runtime/control/Control.h"

#include <functional>

namespace chimera::runtime {

/// A rank's steady clock.
struct Clock {
  /// Clocks of the same number are one; 0 where that cannot be told.
  uint64_t number;
  std::function<int64_t()> now; ///< nanoseconds
};

/// The clock of this process, whose number all processes have that share the
/// host's.
Clock clockOfHost();

struct ClockOffset {
  int64_t ahead = 0;    ///< nanoseconds that it shows more than the root's
  int64_t error = 0;    ///< how far that may be off: half a round trip
  bool isShared = true; ///< with the root: then both are 0, and exact
};

/// Compares the clocks of all ranks with that of `root` and returns, there, the
/// offsets in rank order, and nothing elsewhere. Every rank calls it, when the
/// root has nothing else to send. Throws WaitError where a wait for another
/// rank exceeds `timeout`.
std::vector<ClockOffset> gatherClocks(Control &control, uint32_t root,
                                      std::chrono::milliseconds timeout,
                                      const Clock &clock = clockOfHost());

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_CLOCKS_H
