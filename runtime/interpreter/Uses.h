//===- Uses.h - Uses of buffers by instructions -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The uses of buffers by instructions. The runtime derives everything it knows
// about the lifetime of values from here: the bytes in use (ArenaUse.h), the
// messages that need no copy (ZeroCopy.h), and the points that messages must
// wait for (LastUses.h).
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_USES_H
#define CHIMERA_RUNTIME_INTERPRETER_USES_H

#include "runtime/program/Program.h"

#include <algorithm>

namespace chimera::runtime {

enum class Use {
  Read,
  Write,  ///< writes a new value without reading the old one
  Update, ///< replaces a value that it reads
  /// The value continues in the same bytes under other buffer numbers: this
  /// buffer number ends (Leave) or begins (Enter).
  Leave,
  Enter,
  /// A wait: until here, the operation that it completes has read or written
  /// the buffer.
  EndOfRead,
  EndOfWrite,
};

/// Calls `visit(buffer, Use)` once for each buffer that an instruction of the
/// worker uses, first for those that it reads. A transfer or an all-reduce uses
/// its buffers both at its post and at its wait.
template <typename Visit>
void forEachUse(const program::WorkerT &worker,
                const program::Instruction &instruction, const Visit &visit) {
  using program::Opcode;
  bool isWait = instruction.opcode() == Opcode::Wait;
  const program::Instruction &used =
      isWait ? worker.instructions[instruction.target()] : instruction;
  bool isCut = instruction.opcode() == Opcode::Split ||
               instruction.opcode() == Opcode::Join;
  std::span<const uint32_t> operands = program::operandsOf(worker, used);
  std::span<const uint32_t> results = program::resultsOf(worker, used);
  auto isIn = [](std::span<const uint32_t> buffers, uint32_t buffer) {
    return std::ranges::find(buffers, buffer) != buffers.end();
  };
  for (uint32_t buffer : operands)
    if (isCut)
      visit(buffer, Use::Leave);
    else if (isWait)
      visit(buffer, isIn(results, buffer) ? Use::EndOfWrite : Use::EndOfRead);
    else
      visit(buffer, isIn(results, buffer) ? Use::Update : Use::Read);
  for (uint32_t buffer : results)
    if (isCut)
      visit(buffer, Use::Enter);
    else if (!isIn(operands, buffer))
      visit(buffer, isWait ? Use::EndOfWrite : Use::Write);
}

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_USES_H
