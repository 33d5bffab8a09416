//===- Fold.cpp - Sums and multiples of elements --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/Fold.h"

#include "runtime/device/BFloat16.h"
#include "runtime/system/ParallelFor.h"
#include "runtime/system/VectorWidths.h"

#include <algorithm>
#include <cstring>

using namespace chimera::runtime;

uint64_t chimera::runtime::elementBytes(ElementType type) {
  return type == ElementType::BFloat16  ? 2
         : type == ElementType::Float32 ? 4
                                        : 8;
}

namespace {
/// An additional thread must get at least this number of bytes to be worth its
/// cost.
constexpr int64_t kGrain = 1 << 17;

using Contributions = std::span<const std::byte *const>;

/// Computes the sum block by block in a local accumulator. All contributions of
/// a block are read before the block is written, so `sum` may be one of them.
template <typename T>
[[gnu::always_inline]] inline void foldElements(Contributions contributions,
                                                std::byte *sum, uint64_t begin,
                                                uint64_t end) {
  constexpr uint64_t kBlock = 512;
  Arithmetic<T> accumulator[kBlock];
  T next[kBlock];
  for (uint64_t at = begin; at < end; at += sizeof(next)) {
    uint64_t size = std::min<uint64_t>(sizeof(next), end - at);
    uint64_t count = size / sizeof(T);
    std::memcpy(next, contributions[0] + at, size);
    for (uint64_t i = 0; i < count; ++i)
      accumulator[i] = next[i];
    for (const std::byte *contribution : contributions.subspan(1)) {
      std::memcpy(next, contribution + at, size);
      for (uint64_t i = 0; i < count; ++i)
        accumulator[i] += next[i];
    }
    for (uint64_t i = 0; i < count; ++i)
      next[i] = T(accumulator[i]);
    std::memcpy(sum + at, next, size);
  }
}

CHIMERA_FOR_EACH_SIMD_WIDTH void foldFloats(Contributions contributions,
                                            std::byte *sum, uint64_t begin,
                                            uint64_t end) {
  foldElements<float>(contributions, sum, begin, end);
}
CHIMERA_FOR_EACH_SIMD_WIDTH void foldDoubles(Contributions contributions,
                                             std::byte *sum, uint64_t begin,
                                             uint64_t end) {
  foldElements<double>(contributions, sum, begin, end);
}
CHIMERA_FOR_EACH_SIMD_WIDTH void foldBFloat16s(Contributions contributions,
                                               std::byte *sum, uint64_t begin,
                                               uint64_t end) {
  foldElements<BFloat16>(contributions, sum, begin, end);
}
CHIMERA_FOR_EACH_SIMD_WIDTH void foldIntegers(Contributions contributions,
                                              std::byte *sum, uint64_t begin,
                                              uint64_t end) {
  foldElements<uint64_t>(contributions, sum, begin, end);
}

/// Folds whole elements. Requires that `bytes` is a multiple of `elementBytes`.
template <typename Fold>
void foldAll(const Fold &fold, uint64_t elementBytes,
             Contributions contributions, std::byte *sum, uint64_t bytes) {
  parallelFor(static_cast<int64_t>(bytes / elementBytes), kGrain / elementBytes,
              [&](int64_t begin, int64_t end) {
                fold(contributions, sum, begin * elementBytes,
                     end * elementBytes);
              });
}
} // namespace

void chimera::runtime::fold(ElementType type, Contributions contributions,
                            std::byte *sum, uint64_t bytes) {
  switch (type) {
  case ElementType::Float32:
    return foldAll(foldFloats, 4, contributions, sum, bytes);
  case ElementType::Float64:
    return foldAll(foldDoubles, 8, contributions, sum, bytes);
  case ElementType::BFloat16:
    return foldAll(foldBFloat16s, 2, contributions, sum, bytes);
  case ElementType::UInt64:
    break;
  }
  uint64_t whole = bytes / 8 * 8;
  foldAll(foldIntegers, 8, contributions, sum, whole);
  if (whole == bytes)
    return;
  uint64_t tail = 0;
  for (const std::byte *contribution : contributions) {
    uint64_t next = 0;
    std::memcpy(&next, contribution + whole, bytes - whole);
    tail += next;
  }
  std::memcpy(sum + whole, &tail, bytes - whole);
}

namespace {
template <typename T>
[[gnu::always_inline]] inline void multiply(std::byte *elements, int64_t begin,
                                            int64_t end, double factor) {
  for (int64_t i = begin; i < end; ++i) {
    T value;
    std::memcpy(&value, elements + i * sizeof(T), sizeof(T));
    value = T(static_cast<Arithmetic<T>>(value * factor));
    std::memcpy(elements + i * sizeof(T), &value, sizeof(T));
  }
}

CHIMERA_FOR_EACH_SIMD_WIDTH void
multiplyFloats(std::byte *elements, int64_t begin, int64_t end, double factor) {
  multiply<float>(elements, begin, end, factor);
}
CHIMERA_FOR_EACH_SIMD_WIDTH void multiplyDoubles(std::byte *elements,
                                                 int64_t begin, int64_t end,
                                                 double factor) {
  multiply<double>(elements, begin, end, factor);
}
CHIMERA_FOR_EACH_SIMD_WIDTH void multiplyBFloat16s(std::byte *elements,
                                                   int64_t begin, int64_t end,
                                                   double factor) {
  multiply<BFloat16>(elements, begin, end, factor);
}
} // namespace

void chimera::runtime::scaleElements(ElementType type, Bytes bytes,
                                     double factor) {
  if (type == ElementType::UInt64)
    return;
  const auto multiplyAll = type == ElementType::Float32   ? multiplyFloats
                           : type == ElementType::Float64 ? multiplyDoubles
                                                          : multiplyBFloat16s;
  auto count = static_cast<int64_t>(bytes.size() / elementBytes(type));
  parallelFor(count, kGrain / 4, [&](int64_t begin, int64_t end) {
    multiplyAll(bytes.data(), begin, end, factor);
  });
}
