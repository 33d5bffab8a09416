//===- SumOverlap.h - Overlap of sums and computation -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CALIBRATE_SUMOVERLAP_H
#define CHIMERA_RUNTIME_CALIBRATE_SUMOVERLAP_H

#include "runtime/channel/Channels.h"
#include "runtime/control/Control.h"

#include <chrono>
#include <functional>

namespace chimera::runtime {

/// How a rank computes, and the clock that measures the computation. Tests have
/// their own.
struct ComputationClock {
  std::function<void(int64_t turns)> compute; ///< takes time for each turn
  std::function<int64_t()> nanoseconds;
};

/// Integer arithmetic without memory, and the host's monotonic clock.
const ComputationClock &computationOfHost();

/// The part (0 to 1) of an all-reduce of `bytes` bytes over all ranks (`group`)
/// that overlaps with a longer computation. It is 1 if both together take as
/// long as the computation alone. It is 0 if both together take as long as the
/// all-reduce and then the computation.
///
/// The time of a round is that of its slowest rank. The result is computed from
/// the shortest rounds, because other work on the host makes rounds longer but
/// never shorter. There are 3 to 15 rounds, about as many as fit into `budget`.
/// `clockAhead` is the number of nanoseconds by which this rank's clock is
/// ahead of rank 0's clock. This is a collective call. Requires channels of
/// host memory. Throws the exceptions of waits.
double hiddenPart(Control &control, Channels &channels,
                  const ReduceGroup &group, uint64_t bytes,
                  std::chrono::milliseconds budget, int64_t clockAhead,
                  std::chrono::milliseconds timeout,
                  const ComputationClock &clock = computationOfHost());

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CALIBRATE_SUMOVERLAP_H
