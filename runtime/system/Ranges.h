//===- Ranges.h - Loops over elements on a rank's threads -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Who has threads for the computations of a rank, LibTorch say, lends them to
// the runtime's own loops too. Threads that nobody lends any, such as those
// that move messages, run their loops alone.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_RANGES_H
#define CHIMERA_RUNTIME_SYSTEM_RANGES_H

#include <cstdint>
#include <functional>

namespace chimera::runtime {

/// Is called with [begin, end), from several threads at a time.
using OnRange = std::function<void(int64_t begin, int64_t end)>;

/// Calls `work` with ranges that make up [0, count), each of at least `grain`
/// but the last, and returns when all are done.
void inRanges(int64_t count, int64_t grain, const OnRange &work);

/// Calls `work` as inRanges has to.
using RunRanges = void (*)(int64_t count, int64_t grain, const OnRange &work);
/// From now on inRanges of the calling thread is run by `how`; null: by the
/// calling thread alone.
void runRangesBy(RunRanges how);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_SYSTEM_RANGES_H
