//===- Philox.h - Random numbers by counting --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011): four random numbers that
// are a function of a counter and a key, in integer arithmetic alone. So a
// number can be had anywhere, in any order and on any device, with the same
// bits.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_PHILOX_H
#define CHIMERA_RUNTIME_STAGE_PHILOX_H

#include <array>
#include <cstdint>

namespace chimera::runtime {

/// The numbers of a counter, its lowest word first.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, uint64_t key);

/// Which elements dropout keeps: writes to `kept` whether each of the elements
/// [first, first + count) is, where each is dropped with probability `dropped`.
/// Element n is kept if its draw, word n mod 4 of what philox makes of the
/// counter n / 4, is at least `keptFrom(dropped)`.
void keepElements(double dropped, uint64_t key, uint64_t first, int64_t count,
                  bool *kept);

/// The least draw, a word of 32 bits, whose element is kept; 2^32 where none
/// is. cuRAND makes a float in (0, 1] of a draw x, x * 2^-32 + 2^-33 in float
/// arithmetic. An element is kept if that is more than `dropped` rounded to
/// float, which is what fused kernels of attention ask.
uint64_t keptFrom(double dropped);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_PHILOX_H
