//===- Communication.h - All communication of a program ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_COMMUNICATION_H
#define CHIMERA_RUNTIME_INTERPRETER_COMMUNICATION_H

#include "runtime/channel/Channels.h"

namespace chimera::runtime {

/// All communication of a verified program between its ranks. The id of a
/// reduce group is the index of its communicator in the program. The result
/// does not depend on the rank, so the ranks of a process can share it.
Communication communicationOf(const program::ProgramT &program);

/// The ranks with which `rank` exchanges messages or shares an all-reduce,
/// ascending.
std::vector<uint32_t> peersOf(const Communication &all, uint32_t rank);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_COMMUNICATION_H
