//===- MemoryMeter.h - Bytes of stashes -------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A meter for the memory of stashes. The interpreter knows the size of the
// arena, because it allocates it. It does not know the size of a stash, because
// the stage allocates it. For example, the stash of a transformer consists of
// tensors. So the size of stashes is measured.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_MEMORYMETER_H
#define CHIMERA_RUNTIME_INTERPRETER_MEMORYMETER_H

#include <cstdint>

namespace chimera::runtime {

/// Counts the bytes outside the arena that the stages of the current thread
/// have allocated. The interpreter reads the meter on its own thread between
/// instructions. At these times, stages have allocated only stashes and
/// permanent data. To leave out the permanent data, the interpreter subtracts
/// the value that it read before the first instruction.
class MemoryMeter {
public:
  virtual ~MemoryMeter() = default;
  /// The number of bytes now. It can be negative, if this thread freed memory
  /// that another thread had allocated.
  virtual int64_t currentBytes() const { return 0; }
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_MEMORYMETER_H
