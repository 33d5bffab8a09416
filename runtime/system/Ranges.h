//===- Ranges.h - Parallel loops over elements ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime's own loops run on the threads that already do a rank's
// computations, such as LibTorch's thread pool. A thread registers that pool
// with runRangesBy. Loops of other threads, such as those that move messages,
// run on the calling thread alone.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_RANGES_H
#define CHIMERA_RUNTIME_SYSTEM_RANGES_H

#include <cstdint>
#include <functional>

namespace chimera::runtime {

/// Is called with a range [begin, end), from several threads at the same time.
using OnRange = std::function<void(int64_t begin, int64_t end)>;

/// Splits [0, count) into ranges of at least `grain` elements (the last may be
/// shorter), calls `work` for each, and returns when all are done.
void inRanges(int64_t count, int64_t grain, const OnRange &work);

/// A function that does what inRanges promises.
using RunRanges = void (*)(int64_t count, int64_t grain, const OnRange &work);
/// From now on, inRanges on the calling thread uses `how`. With null it runs on
/// the calling thread alone.
void runRangesBy(RunRanges how);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_SYSTEM_RANGES_H
