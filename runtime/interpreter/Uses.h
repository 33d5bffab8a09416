//===- Uses.h - What an instruction does with buffers -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All that the runtime knows of when values live comes from here: the bytes in
// use (ArenaUse.h), the memory that a message may take with it (HandOver.h) and
// the points that messages have to wait for (LastUses.h).
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_USES_H
#define CHIMERA_RUNTIME_INTERPRETER_USES_H

#include "runtime/program/Program.h"

#include <algorithm>

namespace chimera::runtime {

enum class Use {
  Read,
  Write,  ///< a new value, whatever was there
  Update, ///< a new value in the place of one that is read
  /// A value that goes on under other numbers, in the same bytes: this number
  /// ends or begins.
  Leave,
  Enter,
  /// A wait: what it completes has read or written this until now.
  EndOfRead,
  EndOfWrite,
};

/// Calls `visit(buffer, Use)` for each buffer that an instruction of the worker
/// uses, once: those that it reads come first. A transfer or an all-reduce uses
/// its buffers where it is posted and where it is waited for.
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
