//===- SumOverlap.h - What computation hides of an all-reduce ---*- C++ -*-===//
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

namespace chimera::runtime {

/// The part of an all-reduce of so many bytes over `group`, of all ranks, that
/// is hidden behind arithmetic which takes longer: 1 where both together take
/// as long as the arithmetic alone, 0 where they take as long as one behind the
/// other. The shortest of several rounds of each decides, a round being as long
/// as its slowest rank: what else the host does makes rounds longer, never
/// shorter. There are as many as take about `budget`, but 3 at least. Every
/// rank calls it, with how many nanoseconds its clock shows more than rank 0's.
/// For channels of the host's memory. Throws what waits throw.
double hiddenPart(Control &control, Channels &channels,
                  const ReduceGroup &group, uint64_t bytes,
                  std::chrono::milliseconds budget, int64_t ahead,
                  std::chrono::milliseconds timeout);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CALIBRATE_SUMOVERLAP_H
