//===- Parallel.h - Work on several threads ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLANNER_SEARCH_PARALLEL_H
#define CHIMERA_COMPILER_PLANNER_SEARCH_PARALLEL_H

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace chimera::plan {

/// Calls `work` with each number below `count`, on `threads` threads. One of
/// them is the caller's thread. Smaller numbers start first. Returns when all
/// calls have returned.
template <typename Work>
void parallelFor(size_t count, uint32_t threads, Work work) {
  std::atomic<size_t> next = 0;
  auto run = [&] {
    for (size_t i = next++; i < count; i = next++)
      work(i);
  };
  std::vector<std::jthread> others;
  for (size_t t = 1; t < std::min<size_t>(threads, count); ++t)
    others.emplace_back(run);
  run();
}

} // namespace chimera::plan

#endif // CHIMERA_COMPILER_PLANNER_SEARCH_PARALLEL_H
