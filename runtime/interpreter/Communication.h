//===- Communication.h - All that a program communicates --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_COMMUNICATION_H
#define CHIMERA_RUNTIME_INTERPRETER_COMMUNICATION_H

#include "runtime/channel/Channels.h"

namespace chimera::runtime {

/// What the ranks of a verified program communicate. The ids of the groups are
/// the numbers of its communicators. It is the same at all ranks, so the ranks
/// of a process share it.
Communication communicationOf(const program::ProgramT &program);

/// The ranks that a rank exchanges messages or sums with, ascending.
std::vector<uint32_t> peersOf(const Communication &all, uint32_t rank);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_COMMUNICATION_H
