//===- Capacity.h - What a host can run -------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_CAPACITY_H
#define CHIMERA_RUNTIME_TRAIN_CAPACITY_H

#include "runtime/program/Program.h"

namespace chimera::runtime {

/// The bytes of memory and swap space that the ranks of this host can use: all
/// of the host, or less where the control groups of this process allow less.
/// Looks for the system's files on both below the folder `root`.
uint64_t hostMemory(const std::string &root = "");

/// Whether the arenas of `ranks`, those of all of `program` that are on one
/// host, fit into its memory: a rank touches all of its own before the first
/// step. Empty if they do, else what is missing and what to do. Requires a
/// verified program.
std::string faultOfCapacity(const program::ProgramT &program,
                            std::span<const uint32_t> ranks, uint64_t memory);

/// The same for the memory that trainSequentially needs at least with so many
/// `stages`.
std::string faultOfSequentialCapacity(const program::ProgramT &program,
                                      size_t stages, uint64_t memory);

/// Whether a device holds no more than its worker's `memory_cap`: `taken`
/// bytes, of which the plan contains the arena and the stashes. Empty if it
/// does not, or there is no cap, else what is wrong and what to do.
std::string faultOfDeviceMemory(const program::WorkerT &worker, uint64_t arena,
                                uint64_t stashes, uint64_t taken);

/// Throw std::invalid_argument with what the first two functions above say of
/// the memory of this host, unless that is nothing. The system may kill a
/// process that takes more memory than there is.
void checkCapacity(const program::ProgramT &program,
                   std::span<const uint32_t> ranks);
void checkSequentialCapacity(const program::ProgramT &program, size_t stages);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_CAPACITY_H
