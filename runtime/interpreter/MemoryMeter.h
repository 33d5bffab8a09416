//===- MemoryMeter.h - Bytes of stashes -------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A meter for the memory of stashes. The interpreter owns the arena and knows
// its size. Stashes belong to stages (a transformer's stash consists of
// tensors), so their size must be measured.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_MEMORYMETER_H
#define CHIMERA_RUNTIME_INTERPRETER_MEMORYMETER_H

#include <cstdint>

namespace chimera::runtime {

/// Counts the bytes outside the arena that belong to the stages of the current
/// thread. The interpreter reads it on its own thread between instructions,
/// when only stashes and permanent data of stages are allocated. The value
/// before the first instruction counts as zero.
class MemoryMeter {
public:
  virtual ~MemoryMeter() = default;
  /// The bytes that count now. Negative if this thread freed memory that
  /// another thread had allocated.
  virtual int64_t currentBytes() const { return 0; }
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_MEMORYMETER_H
