//===- Machine.h - What a plan runs on --------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLAN_MACHINE_H
#define CHIMERA_COMPILER_PLAN_MACHINE_H

#include "compiler/plan/Profile.h"
#include "compiler/schedule/Problem.h"

namespace chimera::plan {

/// Devices that are all alike. Times are in nanoseconds.
struct Machine {
  int32_t devices = 1;
  int64_t memory = 0; ///< bytes of a device that a plan may take
  int64_t speed = 1;  ///< floating-point operations a second, of a device
  /// What runs measured on it: then `speed` and `layerOverhead` are of no
  /// account.
  std::vector<Profile> profiles;
  /// What a layer takes beside its operations, in a forward and in each half of
  /// a backward.
  int64_t layerOverhead = 0;
  /// Bytes a second that an update moves; 0 where updates take no time.
  int64_t memoryBandwidth = 0;
  schedule::Network network;
};

/// The nanoseconds that `amount` takes at `rate` a second, rounded up; 2^60,
/// some decades, where it is more.
int64_t nanoseconds(int64_t amount, int64_t rate);

} // namespace chimera::plan

#endif // CHIMERA_COMPILER_PLAN_MACHINE_H
