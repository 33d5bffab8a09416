//===- Effort.h - Limits on the cost of reading a file ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The time and memory of the reader and of the proof must be linear in the size
// of a file. A fuzzer that only looks for crashes does not check this. So this
// class measures the cost: memory as the peak of allocated bytes, and time as
// the number of code regions that ran. The number of regions depends only on
// the input.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_FUZZ_EFFORT_H
#define CHIMERA_TEST_RUNTIME_FUZZ_EFFORT_H

#include <cstddef>
#include <cstdint>

namespace chimera::fuzz {

/// Measures the cost of everything after its construction. Only one may exist
/// at a time.
class Effort {
public:
  Effort();

  /// If the cost exceeds the limit for a file of `bytes` bytes, prints the cost
  /// and `what`, and aborts.
  void check(const char *what, size_t bytes) const;

private:
  uint64_t before; ///< regions that had run before
};

/// The highest costs per byte so far, of files of at least 64 KiB.
struct Highest {
  double memory, regions;
};
Highest highestEffort();

} // namespace chimera::fuzz

#endif // CHIMERA_TEST_RUNTIME_FUZZ_EFFORT_H
