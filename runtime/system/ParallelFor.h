//===- ParallelFor.h - Parallel loops over elements -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parallel loops over elements, for example in reductions. The loops use the
// threads that a rank already has for its computations, such as the thread pool
// of LibTorch. A thread registers this pool for its own loops with
// setParallelFor. On a thread without a registered pool, such as a thread that
// moves messages, a loop runs only on the calling thread.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_PARALLELFOR_H
#define CHIMERA_RUNTIME_SYSTEM_PARALLELFOR_H

#include <cstdint>
#include <functional>

namespace chimera::runtime {

/// The body of a parallel loop. Several threads call it at the same time, each
/// with another range [begin, end).
using RangeFunction = std::function<void(int64_t begin, int64_t end)>;

/// Splits [0, count) into ranges of at least `grain` elements (the last range
/// may be shorter) and calls `work` for each range. Returns when all calls have
/// returned.
void parallelFor(int64_t count, int64_t grain, const RangeFunction &work);

/// An implementation of parallelFor.
using ParallelForFunction = void (*)(int64_t count, int64_t grain,
                                     const RangeFunction &work);
/// Sets the implementation of parallelFor for the calling thread. If it is
/// null, loops run only on the calling thread.
void setParallelFor(ParallelForFunction how);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_SYSTEM_PARALLELFOR_H
