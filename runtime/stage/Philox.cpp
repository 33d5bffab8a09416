//===- Philox.cpp - Random numbers by counting ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/stage/Philox.h"

#include "runtime/system/Ranges.h"
#include "runtime/system/VectorWidths.h"

#include <algorithm>
#include <cmath>

using namespace chimera::runtime;

namespace {

/// Counters that are worked on at once, so that vectors are full.
constexpr int64_t kLanes = 64;
/// Counters that are worth another thread.
constexpr int64_t kGrain = 1 << 13;

/// So many counters, word by word; they become their numbers.
template <int64_t N> struct Counters { uint32_t words[4][N]; };

template <int64_t N>
[[gnu::always_inline]] inline void philoxOf(Counters<N> &counters,
                                            uint64_t key) {
  auto low = static_cast<uint32_t>(key),
       high = static_cast<uint32_t>(key >> 32);
  auto &[a, b, c, d] = counters.words;
  for (int round = 0; round < 10; ++round) {
    for (int64_t i = 0; i < N; ++i) {
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

/// Of the counters [begin, end) of a sample, all elements.
CHIMERA_VECTOR_WIDTHS void keepOf(uint64_t threshold, uint64_t key,
                                  uint64_t sample, int64_t begin, int64_t end,
                                  int64_t elements, bool *kept) {
  Counters<kLanes> counters;
  auto &words = counters.words;
  for (int64_t at = begin; at < end; at += kLanes) {
    for (int64_t i = 0; i < kLanes; ++i) {
      words[0][i] = static_cast<uint32_t>(at + i);
      words[1][i] = static_cast<uint32_t>(static_cast<uint64_t>(at + i) >> 32);
      words[2][i] = static_cast<uint32_t>(sample);
      words[3][i] = static_cast<uint32_t>(sample >> 32);
    }
    philoxOf(counters, key);
    bool keeps[4 * kLanes];
    for (int64_t i = 0; i < kLanes; ++i)
      for (int64_t word = 0; word < 4; ++word)
        keeps[4 * i + word] = words[word][i] < threshold;
    const int64_t last = std::min(4 * std::min(end, at + kLanes), elements);
    std::copy(keeps, keeps + (last - 4 * at), kept + 4 * at);
  }
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

uint64_t chimera::runtime::keepThreshold(double probability) {
  return static_cast<uint64_t>(
      std::llround(std::clamp(probability, 0., 1.) * 4294967296.));
}

void chimera::runtime::keepElements(double probability, uint64_t key,
                                    uint64_t first, int64_t samples,
                                    int64_t elements, bool *kept) {
  const uint64_t threshold = keepThreshold(probability);
  const int64_t counters = (elements + 3) / 4;
  inRanges(samples * counters, kGrain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t sample = begin / counters, from = begin % counters;
      const int64_t to = std::min(counters, from + end - begin);
      keepOf(threshold, key, first + static_cast<uint64_t>(sample), from, to,
             elements, kept + sample * elements);
      begin += to - from;
    }
  });
}
