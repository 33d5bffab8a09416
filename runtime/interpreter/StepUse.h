//===- StepUse.h - Memory and waiting of a step -----------------*- C++ -*-===//
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

/// The memory and the share of waiting of one rank in a step, or those of
/// several ranks together, as `add` combines them. The struct has no padding,
/// so ranks can send it as bytes.
struct StepUse {
  /// The resident memory of a rank's process, in bytes. Of several processes,
  /// the largest one counts.
  uint64_t residentBytes = 0;
  /// The memory of a rank on its device, in bytes. Of several ranks, the one
  /// with the most counts. 0 if there is no device, or if its memory is
  /// unknown.
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
