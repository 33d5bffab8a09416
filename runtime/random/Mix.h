//===- Mix.h - A hash of several 64-bit numbers -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_RANDOM_MIX_H
#define CHIMERA_RUNTIME_RANDOM_MIX_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>

namespace chimera::runtime {

/// The output function of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), applied
/// to x plus SplitMix64's increment.
inline uint64_t splitMix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

/// A hash of the words. h = 0; for each word: h = splitMix64(h ^ word).
inline uint64_t mix(std::initializer_list<uint64_t> words) {
  uint64_t hash = 0;
  for (uint64_t word : words)
    hash = splitMix64(hash ^ word);
  return hash;
}

/// A digest of the bytes and their number. h = number of bytes; for each 64-bit
/// word: h = splitMix64(h ^ word). Zeros pad the last word to 64 bits.
inline uint64_t digestOf(std::span<const std::byte> bytes) {
  uint64_t hash = bytes.size();
  for (size_t at = 0; at < bytes.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at,
                std::min<size_t>(8, bytes.size() - at));
    hash = splitMix64(hash ^ word);
  }
  return hash;
}

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_RANDOM_MIX_H
