//===- Philox.h - Counter-based random numbers ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011) computes four random
// numbers from a counter and a key, in integer arithmetic only. The numbers can
// therefore be computed in any order and on any device, with the same bits.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_RANDOM_PHILOX_H
#define CHIMERA_RUNTIME_RANDOM_PHILOX_H

#include <array>
#include <cstdint>

namespace chimera::runtime {

/// The four random numbers for a counter and a key. The counter's lowest word
/// comes first.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, uint64_t key);

/// The dropout mask of the elements [first, first + count): sets kept[i] to
/// whether element first + i is kept. Each element is dropped with probability
/// `dropped`. The draw of element n is word n mod 4 of `philox`, for the
/// counter with number n / 4 and for `key`. The element is kept if its draw is
/// at least `smallestKeptDraw(dropped)`.
void computeDropoutMask(double dropped, uint64_t key, uint64_t first,
                        int64_t count, bool *kept);

/// The smallest 32-bit draw whose element is kept, or 2^32 if every element is
/// dropped. cuRAND turns a draw x into a float in (0, 1]: x * 2^-32 + 2^-33 in
/// float arithmetic. An element is kept if this float is greater than `dropped`
/// rounded to float. Fused attention kernels use the same rule.
uint64_t smallestKeptDraw(double dropped);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_RANDOM_PHILOX_H
