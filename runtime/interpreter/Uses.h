//===- Uses.h - Uses of buffers by instructions -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The uses of buffers by instructions. The runtime derives everything that it
// knows about the lifetimes of values from forEachUse: the bytes in use
// (ArenaUse.h), the messages that need no copy (ZeroCopy.h), and the
// computations that a message must wait for (LastUses.h).
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
  /// A split or join gives other buffer numbers to a value, which stays in the
  /// same bytes. The value leaves its old buffer numbers (Leave) and enters its
  /// new ones (Enter).
  Leave,
  Enter,
  /// The instruction is a wait. The message or all-reduce that it completes may
  /// read (EndOfRead) or write (EndOfWrite) the buffer until this wait ends.
  EndOfRead,
  EndOfWrite,
};

/// Calls `visit(buffer, Use)` once for each buffer that an instruction of the
/// worker uses: first for its operands, then for its other results. A message
/// or an all-reduce uses its buffers at its post, and again at its wait.
template <typename Visit>
void forEachUse(const program::WorkerT &worker,
                const program::Instruction &instruction, const Visit &visit) {
  using program::Opcode;
  bool isWait = instruction.opcode() == Opcode::Wait;
  const program::Instruction &used =
      isWait ? worker.instructions[instruction.target()] : instruction;
  bool isCut = instruction.opcode() == Opcode::Split ||
               instruction.opcode() == Opcode::Join;
  bool isBackward = instruction.opcode() == Opcode::Backward ||
                    instruction.opcode() == Opcode::InputGradient;
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
    else if (isBackward &&
             worker.buffers[buffer].kind() == program::ValueKind::Loss)
      visit(buffer, Use::Update); // see Stage::backward
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
