//===- Fold.h - Sums and multiples of elements ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one definition of an all-reduce's arithmetic. All channels and devices
// share it, so that their results are equal to the last bit.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DEVICE_FOLD_H
#define CHIMERA_RUNTIME_DEVICE_FOLD_H

#include "runtime/device/Bytes.h"

#include <cstdint>

namespace chimera::runtime {

/// Bytes of one element.
uint64_t elementBytes(ElementType type);

/// Writes the left fold ((c0 + c1) + c2) + … of `contributions`, each of
/// `bytes` bytes, to `sum`, which may be one of them but must not overlap one
/// otherwise. No alignment is needed. Bytes after the last whole element of
/// UInt64 are summed as one shorter number; of floating-point types there must
/// be none. Requires at least one contribution.
void fold(ElementType type, std::span<const std::byte *const> contributions,
          std::byte *sum, uint64_t bytes);

/// Multiplies floating-point elements by `factor`; leaves integers alone, which
/// have no fractions.
void scaleElements(ElementType type, Bytes bytes, double factor);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DEVICE_FOLD_H
