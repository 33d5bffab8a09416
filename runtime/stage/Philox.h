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

/// Which elements dropout keeps: writes whether each of `elements` elements of
/// each of `samples` samples, from number `first` on, is kept, with probability
/// `probability`. Element e of sample s is, where number e mod 4 of the counter
/// (e / 4, s), two 64-bit numbers, is below `probability` times 2^32.
void keepElements(double probability, uint64_t key, uint64_t first,
                  int64_t samples, int64_t elements, bool *kept);

/// The number below which an element's is where it is kept: `probability` times
/// 2^32, rounded.
uint64_t keepThreshold(double probability);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_PHILOX_H
