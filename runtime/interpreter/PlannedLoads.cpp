//===- PlannedLoads.cpp - The loads of a worker ---------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/PlannedLoads.h"

#include <algorithm>

using namespace chimera;
using namespace chimera::runtime;
using program::Instruction;
using program::Opcode;

MicroBatch chimera::runtime::pieceOfStep(const program::ProgramT &program,
                                         uint32_t copy, uint64_t step,
                                         uint32_t m, uint32_t part,
                                         uint32_t parts) {
  return {step + m / program.micro_batches,
          static_cast<uint64_t>(copy) * program.micro_batches +
              m % program.micro_batches,
          part, parts};
}

PlannedLoad chimera::runtime::loadOf(const program::ProgramT &program,
                                     const program::BackwardPieces &pieces,
                                     const program::WorkerT &worker,
                                     uint32_t copy,
                                     const Instruction &instruction,
                                     uint64_t step) {
  PlannedLoad load{
      instruction.kind(),
      {},
      worker.buffers[program::resultsOf(worker, instruction)[0]].bytes()};
  // In the buffer, the tensors of a piece are contiguous. So each piece is
  // loaded separately.
  const uint32_t parts = pieces.partsOf(instruction.micro_batch());
  for (uint32_t k = 0; k < instruction.micro_batches(); ++k)
    for (uint32_t part = 0; part < parts; ++part)
      load.pieces.push_back(pieceOfStep(
          program, copy, step, instruction.micro_batch() + k, part, parts));
  return load;
}

uint64_t chimera::runtime::readAheadBytes(const program::ProgramT &program,
                                          const program::WorkerT &worker,
                                          uint32_t steps) {
  uint64_t bytes = 0;
  for (uint32_t i = worker.body_begin; i < worker.body_end; ++i)
    if (const Instruction &load = worker.instructions[i];
        load.opcode() == Opcode::Load)
      bytes += blockBytes(
          worker.buffers[program::resultsOf(worker, load)[0]].bytes(),
          program.buffer_alignment);
  return bytes * steps;
}

uint32_t chimera::runtime::stepsThatFit(const program::ProgramT &program,
                                        const program::WorkerT &worker,
                                        uint64_t reserved, uint32_t wanted) {
  const uint64_t taken =
      std::max(worker.arena_bytes, worker.peak_bytes) + reserved;
  uint32_t steps = wanted;
  while (worker.memory_cap > 0 && steps > 0 &&
         taken + readAheadBytes(program, worker, steps) > worker.memory_cap)
    --steps;
  return steps;
}
