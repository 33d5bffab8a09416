//===- StepUse.h - What ranks used in a step --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_STEPUSE_H
#define CHIMERA_RUNTIME_INTERPRETER_STEPUSE_H

#include <algorithm>
#include <cstdint>

namespace chimera::runtime {

/// What one rank used in its last step, or several ranks together. Has no
/// padding, so it can be sent between ranks.
struct StepUse {
  /// The resident memory of a rank's process, in bytes: of the largest one.
  uint64_t residentBytes = 0;
  /// The memory of a rank on its device, in bytes: of the rank with the most. 0
  /// if there is no device, or if this is unknown.
  uint64_t deviceBytes = 0;
  /// The share of its step, from 0 to 1, in which a rank waited for messages
  /// and all-reduces of other ranks: the mean over `measured` ranks.
  double waiting = 0;
  /// The number of ranks whose share of waiting is known.
  uint64_t measured = 0;

  /// Adds other ranks.
  void add(const StepUse &other) {
    residentBytes = std::max(residentBytes, other.residentBytes);
    deviceBytes = std::max(deviceBytes, other.deviceBytes);
    if (other.measured == 0)
      return;
    waiting = (waiting * static_cast<double>(measured) +
               other.waiting * static_cast<double>(other.measured)) /
              static_cast<double>(measured + other.measured);
    measured += other.measured;
  }
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_STEPUSE_H
