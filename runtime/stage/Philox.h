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
/// Element n is kept where number n mod 4 of the counter n / 4, of 128 bits, is
/// at least `keptFrom(dropped)`.
void keepElements(double dropped, uint64_t key, uint64_t first, int64_t count,
                  bool *kept);

/// The least number of 32 bits of an element that is kept, 2^32 where none is:
/// that which is more than `dropped`, rounded to float, when it is made one in
/// (0, 1] as cuRAND does, x * 2^-32 + 2^-33 in float. So fused kernels of
/// attention that draw from cuRAND keep the same elements.
uint64_t keptFrom(double dropped);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_PHILOX_H
