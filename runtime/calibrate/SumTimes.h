//===- SumTimes.h - Duration of an all-reduce -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CALIBRATE_SUMTIMES_H
#define CHIMERA_RUNTIME_CALIBRATE_SUMTIMES_H

#include "runtime/calibrate/Fit.h"
#include "runtime/calibrate/MeasuredQueue.h"
#include "runtime/channel/Channels.h"
#include "runtime/control/Control.h"

namespace chimera::runtime {

/// Measures the all-reduce of `bytes` bytes over `group`, `rounds` times.
/// Returns the durations in nanoseconds at rank 0, and nothing at other ranks.
/// A duration begins when the last queue of the group reaches the all-reduce,
/// and ends when the last queue of the group has the sum. If there are several
/// groups, the duration is that of the slowest group. This is a collective
/// call: each rank passes the one group that it belongs to. `clockAhead` is the
/// number of nanoseconds by which this rank's clock is ahead of rank 0's clock.
/// Throws the exceptions of waits and the queue.
std::vector<int64_t> measureSums(Control &control, Channels &channels,
                                 MeasuredQueue &queue, const ReduceGroup &group,
                                 uint64_t bytes, int rounds, int64_t clockAhead,
                                 std::chrono::milliseconds timeout);

/// Describes the durations of all-reduces.
struct SumLine {
  /// The time of a message in the compiler's formula for all-reduces
  /// (messageOfSum). It is fitted to all-reduces of at least kLeastGradient
  /// bytes.
  Line message;
  TimedSize smallest{};      ///< the smallest all-reduce
  double smallestByLine = 0; ///< the nanoseconds that the line gives for it
};

/// Gradients usually have at least this many bytes.
inline constexpr uint64_t kLeastGradient = 64 * 1024;

/// Fits a line to all-reduces over `ranks` ranks. Sizes below kLeastGradient
/// are left out, but the base of the line is at least the time of the smallest
/// all-reduce. Requires at least 2 ranks, ascending sizes, and a size of at
/// least kLeastGradient.
SumLine fitSums(std::span<const TimedSize> sums, uint32_t ranks);

/// Converts the line of all-reduces to the message in the compiler's formula
/// for them (Rabenseifner's algorithm, see
/// compiler/schedule/model/AllReduceTime.h). In this formula, a sum over r
/// ranks takes 2 ceil(log2 r) times the message's base plus 2 (r - 1) / r of
/// the message's time for its bytes. Requires at least 2 ranks.
Line messageOfSum(const Line &sum, uint32_t ranks);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CALIBRATE_SUMTIMES_H
