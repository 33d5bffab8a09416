//===- Philox.cpp - Counter-based random numbers --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/random/Philox.h"

#include "runtime/system/ParallelFor.h"
#include "runtime/system/VectorWidths.h"

#include <algorithm>

using namespace chimera::runtime;

namespace {

/// The number of counters that keepOf handles at a time: enough to fill vector
/// registers.
constexpr uint64_t kLanes = 64;
/// The minimum number of elements per thread.
constexpr int64_t kGrain = 1 << 15;

/// N counters, stored word by word. philoxOf replaces the counters by their
/// random numbers.
template <uint64_t N> struct Counters { uint32_t words[4][N]; };

template <uint64_t N>
[[gnu::always_inline]] inline void philoxOf(Counters<N> &counters,
                                            uint64_t key) {
  auto low = static_cast<uint32_t>(key),
       high = static_cast<uint32_t>(key >> 32);
  auto &[a, b, c, d] = counters.words;
  for (int round = 0; round < 10; ++round) {
    for (uint64_t i = 0; i < N; ++i) {
      const uint64_t first = uint64_t{0xD2511F53} * a[i];
      const uint64_t second = uint64_t{0xCD9E8D57} * c[i];
      a[i] = static_cast<uint32_t>(second >> 32) ^ b[i] ^ low;
      b[i] = static_cast<uint32_t>(second);
      c[i] = static_cast<uint32_t>(first >> 32) ^ d[i] ^ high;
      d[i] = static_cast<uint32_t>(first);
    }
    low += 0x9E3779B9;
    high += 0xBB67AE85;
  }
}

/// computeDropoutMask for the elements [begin, end). `least` is the smallest
/// draw whose element is kept.
CHIMERA_FOR_EACH_SIMD_WIDTH void
keepOf(uint64_t least, uint64_t key, uint64_t begin, uint64_t end, bool *kept) {
  Counters<kLanes> counters;
  auto &words = counters.words;
  while (begin < end) {
    const uint64_t first = begin / 4;
    for (uint64_t i = 0; i < kLanes; ++i) {
      const uint64_t counter = first + i;
      words[0][i] = static_cast<uint32_t>(counter);
      words[1][i] = static_cast<uint32_t>(counter >> 32);
      words[2][i] = 0;
      words[3][i] = 0;
    }
    philoxOf(counters, key);
    bool keeps[4 * kLanes];
    for (uint64_t i = 0; i < kLanes; ++i)
      for (uint64_t word = 0; word < 4; ++word)
        keeps[4 * i + word] = words[word][i] >= least;
    const uint64_t skipped = begin % 4;
    const uint64_t count = std::min(end - begin, 4 * kLanes - skipped);
    kept = std::copy_n(keeps + skipped, count, kept);
    begin += count;
  }
}

/// The float that cuRAND makes from a draw.
float uniform(uint32_t draw) {
  return static_cast<float>(draw) * 0x1p-32f + 0x1p-33f;
}

} // namespace

std::array<uint32_t, 4>
chimera::runtime::philox(std::array<uint32_t, 4> counter, uint64_t key) {
  Counters<1> one;
  for (size_t word = 0; word < 4; ++word)
    one.words[word][0] = counter[word];
  philoxOf(one, key);
  return {one.words[0][0], one.words[1][0], one.words[2][0], one.words[3][0]};
}

uint64_t chimera::runtime::smallestKeptDraw(double dropped) {
  const auto limit = static_cast<float>(dropped);
  uint64_t below = 0, least = uint64_t(1) << 32;
  while (below < least) {
    const uint64_t middle = (below + least) / 2;
    if (uniform(static_cast<uint32_t>(middle)) > limit)
      least = middle;
    else
      below = middle + 1;
  }
  return least;
}

void chimera::runtime::computeDropoutMask(double dropped, uint64_t key,
                                          uint64_t first, int64_t count,
                                          bool *kept) {
  const uint64_t least = smallestKeptDraw(dropped);
  parallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
    keepOf(least, key, first + static_cast<uint64_t>(begin),
           first + static_cast<uint64_t>(end), kept + begin);
  });
}
