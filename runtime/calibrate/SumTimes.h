//===- SumTimes.h - What an all-reduce takes --------------------*- C++ -*-===//
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

/// Measures the all-reduce of so many bytes over `group`, `rounds` times, and
/// returns at rank 0 what each took in nanoseconds: from when the queue of the
/// last rank of a group got to it until that of the last one had the sum, in
/// the group that took longest. Nothing elsewhere. Every rank calls it, with
/// the one group in which it is and how many nanoseconds its clock shows more
/// than rank 0's. Throws what waits and the queue throw.
std::vector<int64_t> measureSums(Control &control, Channels &channels,
                                 MeasuredQueue &queue, const ReduceGroup &group,
                                 uint64_t bytes, int rounds, int64_t ahead,
                                 std::chrono::milliseconds timeout);

/// What all-reduces take.
struct SumLine {
  Line message;              ///< of all-reduces of kLeastGradient and more
  Sized smallest{};          ///< the all-reduce of fewest bytes
  double smallestByLine = 0; ///< what the line says of it, in nanoseconds
};

/// Gradients mostly have as many bytes, or more.
inline constexpr uint64_t kLeastGradient = 64 * 1024;

/// The line of all-reduces over so many ranks, those of less than
/// kLeastGradient left out, but that by the line none takes less than the
/// smallest. Requires at least 2 ranks and an all-reduce of kLeastGradient or
/// more, and that sizes ascend.
SumLine fitSums(std::span<const Sized> sums, uint32_t ranks);

/// The message of an all-reduce in the compiler's form of it, Rabenseifner's
/// (compiler/schedule/AllReduce.h): over r ranks a sum takes 2 ceil(log2 r)
/// times the message's base and 2 (r - 1) / r of what it takes for its bytes.
/// Requires at least 2 ranks.
Line messageOfSum(const Line &sum, uint32_t ranks);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CALIBRATE_SUMTIMES_H
