//===- Capacity.h - What a host can run -------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CORE_CAPACITY_H
#define CHIMERA_RUNTIME_CORE_CAPACITY_H

#include "runtime/program/Program.h"

namespace chimera::runtime {

/// Ranks that one process takes as threads.
inline constexpr uint32_t kMostThreadRanks = 4096;

/// Bytes of memory and swap space of this host.
uint64_t hostMemory();

/// What keeps `ranks`, of all ranks of `program`, from running in one process of
/// a host with so much memory, with what to do; empty if nothing does. Their
/// arenas must fit, since a rank touches all of its own before the first step.
/// Requires a verified program.
std::string faultOfCapacity(const program::ProgramT &program,
                            std::span<const uint32_t> ranks, uint64_t memory);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CORE_CAPACITY_H
