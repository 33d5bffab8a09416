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

/// Operand `k` of an instruction, or a result if `k` is not less than the
/// number of operands.
inline uint32_t &operand(ProgramT &program, uint32_t w,
                         const Instruction &instruction, uint32_t k) {
  return worker(program, w).operands[instruction.first_operand() + k];
}

inline Buffer &bufferOf(ProgramT &program, uint32_t w,
                        const Instruction &instruction, uint32_t k) {
  return worker(program, w).buffers[operand(program, w, instruction, k)];
}

/// The first buffer of `kind` on worker `w` after `skip` others.
inline uint32_t someBuffer(ProgramT &program, uint32_t w, ValueKind kind,
                           uint32_t skip = 0) {
  std::vector<Buffer> &buffers = worker(program, w).buffers;
  for (uint32_t b = 0; b < buffers.size(); ++b)
    if (buffers[b].kind() == kind && skip-- == 0)
      return b;
  ADD_FAILURE() << "the sample has too few buffers of " << nameOf(kind);
  return 0;
}

/// A copy of `instruction` with entries of its own in the operand pool.
inline Instruction withOwnOperands(WorkerT &worker, Instruction instruction) {
  auto first = static_cast<uint32_t>(worker.operands.size());
  for (uint32_t k = 0; k < instruction.operands() + instruction.results(); ++k)
    worker.operands.push_back(worker.operands[instruction.first_operand() + k]);
  instruction.mutate_first_operand(first);
  return instruction;
}

/// Inserts an instruction before `index`, with operands of its own.
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

/// Moves an instruction before the one that was at `to`.
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

/// Gives all stages the weights and states of stage 0, the smallest, so that
/// sizes no longer distinguish their values. Stated peaks do not change.
inline void makeStagesAlike(ProgramT &program) {
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
