//===- Finite.cpp - Whether numbers are finite ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/weights/Finite.h"

#include "runtime/system/ParallelFor.h"
#include "runtime/system/VectorWidths.h"

#include <atomic>
#include <cstdint>

namespace chimera::runtime {
namespace {

/// The minimum number of elements per thread.
constexpr int64_t kFiniteGrain = 1 << 16;

// An element is finite if and only if its exponent has a zero bit. The test
// uses integers, because compilers do not vectorise a loop that reduces
// floating-point comparisons to one truth value.
template <typename Bits, Bits kExponent>
[[gnu::always_inline]] inline bool areFiniteIn(const Bits *elements,
                                               int64_t begin, int64_t end) {
  Bits found = 0;
  for (int64_t i = begin; i < end; ++i)
    found |= Bits((elements[i] & kExponent) == kExponent);
  return found == 0;
}

CHIMERA_FOR_EACH_SIMD_WIDTH bool areFiniteIn(const uint16_t *elements,
                                             int64_t begin, int64_t end) {
  return areFiniteIn<uint16_t, 0x7F80u>(elements, begin, end);
}

CHIMERA_FOR_EACH_SIMD_WIDTH bool areFiniteIn(const uint32_t *elements,
                                             int64_t begin, int64_t end) {
  return areFiniteIn<uint32_t, 0x7F800000u>(elements, begin, end);
}

CHIMERA_FOR_EACH_SIMD_WIDTH bool areFiniteIn(const uint64_t *elements,
                                             int64_t begin, int64_t end) {
  return areFiniteIn<uint64_t, 0x7FF0000000000000u>(elements, begin, end);
}

template <typename Bits> bool areFiniteAs(ConstBytes bytes) {
  const auto *elements = reinterpret_cast<const Bits *>(bytes.data());
  std::atomic<bool> areAll = true;
  parallelFor(static_cast<int64_t>(bytes.size() / sizeof(Bits)), kFiniteGrain,
              [&](int64_t begin, int64_t end) {
                if (!areFiniteIn(elements, begin, end))
                  areAll.store(false);
              });
  return areAll.load();
}

} // namespace

bool areFinite(program::DataType type, ConstBytes elements) {
  return type == program::DataType::Float64 ? areFiniteAs<uint64_t>(elements)
         : type == program::DataType::BFloat16
             ? areFiniteAs<uint16_t>(elements)
             : areFiniteAs<uint32_t>(elements);
}

} // namespace chimera::runtime
