//===- Saturated.h - Sums and products that do not overflow -----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_SATURATED_H
#define CHIMERA_RUNTIME_PROGRAM_SATURATED_H

#include <cstdint>
#include <initializer_list>

namespace chimera::program {

/// The product, or UINT64_MAX if it overflows.
inline uint64_t saturatedProduct(uint64_t left, uint64_t right) {
  uint64_t result = 0;
  return __builtin_mul_overflow(left, right, &result) ? UINT64_MAX : result;
}

/// The sum, or UINT64_MAX if it overflows.
inline uint64_t saturatedSum(uint64_t left, uint64_t right) {
  uint64_t result = 0;
  return __builtin_add_overflow(left, right, &result) ? UINT64_MAX : result;
}

/// The product and the sum of any number of sizes, or INT64_MAX if it
/// overflows. Requires that no size is negative.
inline int64_t saturatedProduct(std::initializer_list<int64_t> factors) {
  int64_t result = 1;
  for (int64_t factor : factors)
    if (__builtin_mul_overflow(result, factor, &result))
      return INT64_MAX;
  return result;
}

inline int64_t saturatedSum(std::initializer_list<int64_t> terms) {
  int64_t result = 0;
  for (int64_t term : terms)
    if (__builtin_add_overflow(result, term, &result))
      return INT64_MAX;
  return result;
}

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_SATURATED_H
