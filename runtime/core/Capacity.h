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

/// Bytes of memory and swap space of this host.
uint64_t hostMemory();

/// Whether the arenas of `ranks`, those of all of `program` that are on one
/// host, fit into its memory: a rank touches all of its own before the first
/// step. Empty if they do, else what is missing and what to do. Requires a
/// verified program.
std::string faultOfCapacity(const program::ProgramT &program,
                            std::span<const uint32_t> ranks, uint64_t memory);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CORE_CAPACITY_H
