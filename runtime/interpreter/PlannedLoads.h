//===- PlannedLoads.h - The loads of a worker -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_PLANNEDLOADS_H
#define CHIMERA_RUNTIME_INTERPRETER_PLANNEDLOADS_H

#include "runtime/data/ReadAhead.h"
#include "runtime/program/BackwardPieces.h"
#include "runtime/program/Program.h"

namespace chimera::runtime {

/// The most steps that samples are read ahead.
inline constexpr uint32_t kMaxReadAhead = 2;

/// Micro-batch `m` of a step, or a part of it, in data-parallel copy `copy`.
/// Without a flush, micro-batch N + m is micro-batch m of the next step, where
/// N is program.micro_batches.
MicroBatch pieceOfStep(const program::ProgramT &program, uint32_t copy,
                       uint64_t step, uint32_t m, uint32_t part,
                       uint32_t parts);

/// The values that `instruction`, a load, loads in a step.
PlannedLoad loadOf(const program::ProgramT &program,
                   const program::BackwardPieces &pieces,
                   const program::WorkerT &worker, uint32_t copy,
                   const program::Instruction &instruction, uint64_t step);

/// The bytes of memory in which a rank keeps the samples of `steps` steps that
/// are read ahead. 0 if the worker loads nothing.
uint64_t readAheadBytes(const program::ProgramT &program,
                        const program::WorkerT &worker, uint32_t steps);

/// The largest number of steps, at most `wanted`, whose samples fit into the
/// memory_cap of `worker`, beside its arena and its live values, and beside
/// `reserved` bytes. Requires wanted <= kMaxReadAhead.
uint32_t stepsThatFit(const program::ProgramT &program,
                      const program::WorkerT &worker, uint64_t reserved,
                      uint32_t wanted);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_PLANNEDLOADS_H
