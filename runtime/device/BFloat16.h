//===- BFloat16.h - A number of 16 bits -------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DEVICE_BFLOAT16_H
#define CHIMERA_RUNTIME_DEVICE_BFLOAT16_H

#include <bit>
#include <cstdint>
#include <type_traits>

namespace chimera::runtime {

/// A number in bfloat16: the upper half of the bits of a float32. It is only
/// stored. Arithmetic is in float32.
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  /// Rounds to the nearest number, and of two that are equally near to the one
  /// whose last bit is 0. All NaNs become one NaN. The bits are those of
  /// PyTorch's conversion.
  explicit BFloat16(float value) {
    const auto all = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = all + 0x7FFF + (all >> 16 & 1);
    bits = static_cast<uint16_t>(value != value ? 0x7FC0 : rounded >> 16);
  }
  operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
};

/// The type in which numbers of type T are added and multiplied.
template <typename T>
using Arithmetic = std::conditional_t<std::is_same_v<T, BFloat16>, float, T>;

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DEVICE_BFLOAT16_H
