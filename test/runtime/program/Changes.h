//===- Changes.h - Finding and changing parts of a program ------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Helpers for tests that break a valid program in one place.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_PROGRAM_CHANGES_H
#define CHIMERA_TEST_RUNTIME_PROGRAM_CHANGES_H

#include "runtime/program/Program.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace chimera::program {

inline WorkerT &worker(ProgramT &program, uint32_t w) {
  return *program.workers[w];
}

inline uint32_t indexOf(ProgramT &program, uint32_t w, Opcode opcode,
                        uint32_t skip = 0) {
  std::vector<Instruction> &stream = worker(program, w).instructions;
  for (uint32_t i = 0; i < stream.size(); ++i)
    if (stream[i].opcode() == opcode && skip-- == 0)
      return i;
  ADD_FAILURE() << "the sample has too few " << nameOf(opcode);
  return 0;
}

inline Instruction &find(ProgramT &program, uint32_t w, Opcode opcode,
                         uint32_t skip = 0) {
  return worker(program, w).instructions[indexOf(program, w, opcode, skip)];
}

/// Operand `k` of an instruction. Its results have the numbers after its
/// operands.
inline uint32_t &operand(ProgramT &program, uint32_t w,
                         const Instruction &instruction, uint32_t k) {
  return worker(program, w).operands[instruction.first_operand() + k];
}

inline Buffer &bufferOf(ProgramT &program, uint32_t w,
                        const Instruction &instruction, uint32_t k) {
  return worker(program, w).buffers[operand(program, w, instruction, k)];
}

/// A buffer of `kind` on worker `w`: the first one if `skip` is 0, the second
/// one if `skip` is 1, and so on.
inline uint32_t indexOfBuffer(ProgramT &program, uint32_t w, ValueKind kind,
                              uint32_t skip = 0) {
  std::vector<Buffer> &buffers = worker(program, w).buffers;
  for (uint32_t b = 0; b < buffers.size(); ++b)
    if (buffers[b].kind() == kind && skip-- == 0)
      return b;
  ADD_FAILURE() << "the sample has too few buffers of " << nameOf(kind);
  return 0;
}

/// A copy of `instruction` that shares no entry of `worker.operands` with it.
inline Instruction withOwnOperands(WorkerT &worker, Instruction instruction) {
  auto first = static_cast<uint32_t>(worker.operands.size());
  for (uint32_t k = 0; k < instruction.operands() + instruction.results(); ++k)
    worker.operands.push_back(worker.operands[instruction.first_operand() + k]);
  instruction.mutate_first_operand(first);
  return instruction;
}

/// Inserts a copy of `instruction` at position `index` (withOwnOperands).
inline void insert(ProgramT &program, uint32_t w, uint32_t index,
                   Instruction instruction) {
  WorkerT &stream = worker(program, w);
  for (Instruction &each : stream.instructions)
    if (each.opcode() == Opcode::Wait && each.target() >= index)
      each.mutate_target(each.target() + 1);
  stream.instructions.insert(stream.instructions.begin() + index,
                             withOwnOperands(stream, instruction));
  ++stream.body_end;
}

/// Moves the instruction at `from`, so that it comes directly before the
/// instruction at `to`.
inline void move(ProgramT &program, uint32_t w, uint32_t from, uint32_t to) {
  std::vector<Instruction> &stream = worker(program, w).instructions;
  std::vector<uint32_t> order(stream.size());
  std::iota(order.begin(), order.end(), 0);
  order.erase(order.begin() + from);
  order.insert(order.begin() + to - (from < to), from);
  std::vector<Instruction> moved;
  std::vector<uint32_t> now(stream.size());
  for (uint32_t i = 0; i < order.size(); ++i) {
    moved.push_back(stream[order[i]]);
    now[order[i]] = i;
  }
  for (Instruction &each : moved)
    if (each.opcode() == Opcode::Wait)
      each.mutate_target(now[each.target()]);
  stream = std::move(moved);
}

/// Gives the weights and optimizer states of all stages the sizes of stage 0,
/// which are the smallest. Then sizes no longer show to which stage a value
/// belongs. Does not change the peaks that the program states.
inline void equaliseStageSizes(ProgramT &program) {
  const Stage first = program.stages[0];
  for (Stage &stage : program.stages) {
    stage.mutate_weights_bytes(first.weights_bytes());
    stage.mutate_optimizer_bytes(first.optimizer_bytes());
  }
  for (auto &stream : program.workers)
    for (Buffer &buffer : stream->buffers)
      if (buffer.kind() == ValueKind::OptimizerState)
        buffer.mutate_bytes(first.optimizer_bytes());
      else if (buffer.kind() == ValueKind::Weights ||
               buffer.kind() == ValueKind::WeightGradient)
        buffer.mutate_bytes(first.weights_bytes());
}

inline void shrink(Buffer &buffer) { buffer.mutate_bytes(buffer.bytes() - 8); }

} // namespace chimera::program

#endif // CHIMERA_TEST_RUNTIME_PROGRAM_CHANGES_H
