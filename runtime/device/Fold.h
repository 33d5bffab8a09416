//===- Fold.h - Sums and multiples of elements ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The arithmetic of an all-reduce. All channels and devices use this
// definition, so their results are equal to the last bit.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DEVICE_FOLD_H
#define CHIMERA_RUNTIME_DEVICE_FOLD_H

#include "runtime/device/Bytes.h"

#include <cstdint>

namespace chimera::runtime {

/// The size of one element in bytes.
uint64_t elementBytes(ElementType type);

/// Writes the left fold ((c0 + c1) + c2) + … of `contributions`, each of
/// `bytes` bytes, to `sum`. `sum` may be one of the contributions, but must not
/// overlap a contribution partly. Memory may be unaligned. If the type is
/// UInt64 and the last element is incomplete, its bytes are summed as a shorter
/// integer. For floating-point types `bytes` must be a multiple of the element
/// size. BFloat16 is added in float32, and only the sum is rounded. Requires at
/// least one contribution.
void fold(ElementType type, std::span<const std::byte *const> contributions,
          std::byte *sum, uint64_t bytes);

/// Multiplies floating-point elements by `factor`. Does nothing for integers,
/// which have no fractions.
void scaleElements(ElementType type, Bytes bytes, double factor);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DEVICE_FOLD_H
