//===- Effort.h - Limits on the cost of reading a file ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reader and proof must take time and memory that are linear in the size of a
// file. A fuzzer that only looks for crashes would not notice if they are not.
// So this measures both: memory as allocated bytes, and time as the number of
// code regions that ran, which depends on nothing but the input.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_FUZZ_EFFORT_H
#define CHIMERA_TEST_RUNTIME_FUZZ_EFFORT_H

#include <cstddef>
#include <cstdint>

namespace chimera::fuzz {

/// Measures from its construction on. Only one may exist at a time.
class Effort {
public:
  Effort();

  /// Aborts and prints the numbers if the cost exceeds what a file of `bytes`
  /// bytes may cost.
  void check(const char *what, size_t bytes) const;

private:
  uint64_t before; ///< regions that had run before
};

/// The highest cost per byte so far, among files of at least 64 KiB.
struct Highest {
  double memory, regions;
};
Highest highestEffort();

} // namespace chimera::fuzz

#endif // CHIMERA_TEST_RUNTIME_FUZZ_EFFORT_H
