//===- Fold.cpp - Sums and multiples of elements --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/Fold.h"

#include <algorithm>
#include <cstring>

using namespace chimera::runtime;

uint64_t chimera::runtime::elementBytes(ElementType type) {
  return type == ElementType::Float32 ? 4 : 8;
}

namespace {
/// Folds whole blocks in a local accumulator: all contributions of a block are
/// read before it is written, so the sum may be one of them.
template <typename T>
void foldElements(std::span<const std::byte *const> contributions,
                  std::byte *sum, uint64_t bytes) {
  constexpr uint64_t kBlock = 512;
  T accumulator[kBlock];
  T next[kBlock];
  for (uint64_t at = 0; at < bytes; at += sizeof(accumulator)) {
    uint64_t size = std::min<uint64_t>(sizeof(accumulator), bytes - at);
    uint64_t count = size / sizeof(T);
    std::memcpy(accumulator, contributions[0] + at, size);
    for (const std::byte *contribution : contributions.subspan(1)) {
      std::memcpy(next, contribution + at, size);
      for (uint64_t i = 0; i < count; ++i)
        accumulator[i] += next[i];
    }
    std::memcpy(sum + at, accumulator, size);
  }
}
} // namespace

void chimera::runtime::fold(ElementType type,
                            std::span<const std::byte *const> contributions,
                            std::byte *sum, uint64_t bytes) {
  switch (type) {
  case ElementType::Float32:
    return foldElements<float>(contributions, sum, bytes);
  case ElementType::Float64:
    return foldElements<double>(contributions, sum, bytes);
  case ElementType::UInt64:
    break;
  }
  uint64_t whole = bytes / 8 * 8;
  foldElements<uint64_t>(contributions, sum, whole);
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
template <typename T> void multiply(Bytes bytes, double factor) {
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    value = static_cast<T>(value * factor);
    std::memcpy(bytes.data() + at, &value, sizeof(T));
  }
}
} // namespace

void chimera::runtime::scaleElements(ElementType type, Bytes bytes,
                                     double factor) {
  switch (type) {
  case ElementType::Float32:
    return multiply<float>(bytes, factor);
  case ElementType::Float64:
    return multiply<double>(bytes, factor);
  case ElementType::UInt64:
    return;
  }
}
