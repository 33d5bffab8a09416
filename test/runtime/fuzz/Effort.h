//===- Effort.h - What reading a file may cost ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Time and memory that reader and proof take are linear in the size of a file.
// A fuzzer that only looks for crashes does not see it where they are not, so
// this counts both: memory as what is allocated, time as how many regions of
// the code ran, which depends on nothing but the input.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_FUZZ_EFFORT_H
#define CHIMERA_TEST_RUNTIME_FUZZ_EFFORT_H

#include <cstddef>
#include <cstdint>

namespace chimera::fuzz {

/// Counts from its construction on. One at a time.
class Effort {
public:
  Effort();

  /// Aborts, with the numbers, where more has been spent than a file of `bytes`
  /// may cost.
  void check(const char *what, size_t bytes) const;

private:
  uint64_t before; ///< regions run until then
};

/// The most that one file has cost so far for each of its bytes, among files of
/// at least 64 KiB.
struct Highest {
  double memory, regions;
};
Highest highestEffort();

} // namespace chimera::fuzz

#endif // CHIMERA_TEST_RUNTIME_FUZZ_EFFORT_H
