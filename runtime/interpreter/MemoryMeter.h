//===- MemoryMeter.h - Bytes that stages hold -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The arena of a worker is the interpreter's own; what stashes hold is not (a
// transformer's lies in tensors). A meter tells how many bytes those are.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_MEMORYMETER_H
#define CHIMERA_RUNTIME_INTERPRETER_MEMORYMETER_H

#include <cstdint>

namespace chimera::runtime {

/// Counts the bytes that the stages called by the current thread hold outside
/// the arena. The interpreter reads it on its own thread between instructions,
/// when only stashes and what stages keep for good are alive; it takes the
/// value before the first instruction as zero.
class MemoryMeter {
public:
  virtual ~MemoryMeter() = default;
  /// Bytes now; may be negative where memory was freed by this thread that
  /// another one allocated.
  virtual int64_t currentBytes() const { return 0; }
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_MEMORYMETER_H
