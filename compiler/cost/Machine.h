//===- Machine.h - The devices that a plan uses -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_COST_MACHINE_H
#define CHIMERA_COMPILER_COST_MACHINE_H

#include "compiler/cost/Profile.h"
#include "compiler/schedule/model/Problem.h"

namespace chimera::cost {

/// Equal devices and their network. Times are in nanoseconds.
struct Machine {
  int32_t devices = 1;
  int64_t memory = 0; ///< bytes per device that a plan may use
  int64_t speed = 1;  ///< floating-point operations per second of a device
  /// Measurements of runs on this machine. If there are any, `speed`,
  /// `layerOverhead` and `memoryBandwidth` are not used.
  std::vector<Profile> profiles;
  /// A fixed time of a layer, in addition to the time of its operations. It is
  /// added once to a forward, once to an input gradient and once to a weight
  /// gradient.
  int64_t layerOverhead = 0;
  /// Bytes per second that an update reads and writes. 0: updates take no time.
  int64_t memoryBandwidth = 0;
  schedule::Network network;
};

/// The time in nanoseconds for `amount` at `rate` per second, rounded up. The
/// result is at most 2^60 (36 years).
int64_t nanosecondsFor(int64_t amount, int64_t rate);

} // namespace chimera::cost

#endif // CHIMERA_COMPILER_COST_MACHINE_H
