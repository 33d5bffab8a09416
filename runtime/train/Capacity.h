//===- Capacity.h - Limits of a host's memory -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_CAPACITY_H
#define CHIMERA_RUNTIME_TRAIN_CAPACITY_H

#include "runtime/program/Program.h"

namespace chimera::runtime {

/// The memory and swap space, in bytes, that the ranks of this host can use.
/// This is all memory and swap space of the host, or less if the control groups
/// of this process allow less. `root` is the folder below which the system's
/// files are read.
uint64_t hostMemory(const std::string &root = "");

/// Checks that the arenas of `ranks`, the ranks of `program` on one host, fit
/// into `memory`, and with them the samples that ranks read ahead:
/// `readAhead[w]` bytes of a rank of worker w (none if it is empty). Each rank
/// touches its whole arena before the first step. If `onAccelerators`, arenas
/// are not in the memory of the host. If `hasCheckpoints`, also counts the
/// copies of their state that are written. Returns an empty string if they fit,
/// else an error that says what is missing and what to do. Requires a verified
/// program.
std::string capacityError(const program::ProgramT &program,
                          std::span<const uint32_t> ranks, uint64_t memory,
                          bool hasCheckpoints = false,
                          std::span<const uint64_t> readAhead = {},
                          bool onAccelerators = false);

/// Checks that the minimum memory of trainSequentially, with this number of
/// `stages` and with checkpoints or without, fits into `memory`. Returns an
/// empty string if it fits, else an error message.
std::string faultOfSequentialCapacity(const program::ProgramT &program,
                                      size_t stages, uint64_t memory,
                                      bool hasCheckpoints = false);

/// Checks that a device's memory use is at most the `memory_cap` of `worker`.
/// `taken` is the number of bytes in use on the device. `arena` and `stashes`
/// are the bytes of the arena and of the stashes, which the plan of the program
/// includes. Returns an empty string if the use is within the cap or there is
/// no cap, else what is wrong and what to do.
std::string deviceMemoryError(const program::WorkerT &worker, uint64_t arena,
                              uint64_t stashes, uint64_t taken);

/// These two functions check the memory of this host. Without the check, the
/// system may kill a process that uses too much. They throw
/// std::invalid_argument with the message of capacityError or
/// faultOfSequentialCapacity, unless it is empty.
void checkCapacity(const program::ProgramT &program,
                   std::span<const uint32_t> ranks, bool hasCheckpoints,
                   std::span<const uint64_t> readAhead, bool onAccelerators);
void checkSequentialCapacity(const program::ProgramT &program, size_t stages,
                             bool hasCheckpoints);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_CAPACITY_H
