//===- Saturating.h - Sums that do not overflow -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SATURATING_H
#define CHIMERA_COMPILER_SCHEDULE_SATURATING_H

#include <cstdint>
#include <limits>

namespace chimera::schedule {

/// The sum of two times, at most INT64_MAX.
inline int64_t saturatingAdd(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum)
             ? std::numeric_limits<int64_t>::max()
             : sum;
}

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SATURATING_H
