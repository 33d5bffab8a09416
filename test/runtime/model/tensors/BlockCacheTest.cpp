//===- BlockCacheTest.cpp - Large memory is kept for the next use ---------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/tensors/BlockCache.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

using namespace chimera::runtime;

namespace {
constexpr size_t kMiB = size_t(1) << 20;

TEST(BlockCacheTest, TheSameSizeGetsTheSameMemory) {
  BlockCache memory;
  void *first = memory.take(3 * kMiB), *second = memory.take(3 * kMiB);
  EXPECT_NE(first, second);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
  memory.free(first, 3 * kMiB);
  memory.free(second, 3 * kMiB);
  EXPECT_EQ(memory.cachedBytes(), 6 * kMiB);
  // take() returns the memory that was freed last.
  EXPECT_EQ(memory.take(3 * kMiB), second);
  EXPECT_EQ(memory.take(3 * kMiB), first);
  EXPECT_EQ(memory.cachedBytes(), 0u);
  memory.free(first, 3 * kMiB);
  memory.free(second, 3 * kMiB);
}

TEST(BlockCacheTest, KeptMemoryDoesNotRaiseThePeak) {
  BlockCache memory;
  void *a = memory.take(4 * kMiB), *b = memory.take(2 * kMiB);
  memory.free(a, 4 * kMiB);
  memory.free(b, 2 * kMiB);
  EXPECT_EQ(memory.cachedBytes(), 6 * kMiB);
  // At most 6 MiB were in use at the same time, so used and kept memory
  // together may not exceed 6 MiB. So taking 3 MiB releases the oldest kept
  // memory.
  void *c = memory.take(3 * kMiB);
  EXPECT_EQ(memory.cachedBytes(), 2 * kMiB);
  EXPECT_EQ(memory.take(2 * kMiB), b);
  // 8 MiB exceed the peak so far, so all kept memory is released.
  void *d = memory.take(8 * kMiB);
  EXPECT_EQ(memory.cachedBytes(), 0u);
  memory.free(b, 2 * kMiB);
  memory.free(c, 3 * kMiB);
  memory.free(d, 8 * kMiB);
  EXPECT_EQ(memory.cachedBytes(), 13 * kMiB);
}

TEST(BlockCacheTest, AFailedAllocationIsNotCounted) {
  BlockCache memory;
  void *a = memory.take(2 * kMiB);
  memory.free(a, 2 * kMiB);
  EXPECT_ANY_THROW(memory.take(size_t(1) << 60));
  a = memory.take(2 * kMiB);
  memory.free(a, 2 * kMiB);
  // The peak is still 2 MiB.
  void *b = memory.take(kMiB);
  EXPECT_EQ(memory.cachedBytes(), 0u);
  memory.free(b, kMiB);
}

TEST(BlockCacheTest, AnyThreadMayFree) {
  BlockCache memory;
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&memory, thread] {
      for (size_t round = 0; round < 200; ++round) {
        size_t bytes = (1 + (thread + round) % 3) * kMiB;
        void *taken = memory.take(bytes);
        *static_cast<size_t *>(taken) = round;
        std::thread([&] { memory.free(taken, bytes); }).join();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_LE(memory.cachedBytes(), 12 * kMiB);
  EXPECT_GE(memory.cachedBytes(), kMiB);
}

} // namespace
