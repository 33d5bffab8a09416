//===- ParallelFor.h - Parallel loops over elements -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime's own loops run on the threads that already do a rank's
// computations, such as LibTorch's thread pool. A thread registers that pool
// with setParallelFor. Loops of other threads, such as those that move
// messages, run on the calling thread alone.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_PARALLELFOR_H
#define CHIMERA_RUNTIME_SYSTEM_PARALLELFOR_H

#include <cstdint>
#include <functional>

namespace chimera::runtime {

/// Is called with a range [begin, end), from several threads at the same time.
using RangeFunction = std::function<void(int64_t begin, int64_t end)>;

/// Splits [0, count) into ranges of at least `grain` elements (the last may be
/// shorter) and calls `work` for each range. Returns when all calls are done.
void parallelFor(int64_t count, int64_t grain, const RangeFunction &work);

/// A function that does what parallelFor promises.
using ParallelForFunction = void (*)(int64_t count, int64_t grain,
                                     const RangeFunction &work);
/// From now on, parallelFor on the calling thread uses `how`. With null it runs
/// on the calling thread alone.
void setParallelFor(ParallelForFunction how);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_SYSTEM_PARALLELFOR_H
