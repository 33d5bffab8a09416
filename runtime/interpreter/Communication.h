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

/// All communication of a verified program between its ranks. The id of a group
/// is the index of a communicator in the program. The result is equal at all
/// ranks, so the ranks of a process share it.
Communication communicationOf(const program::ProgramT &program);

/// The ranks with which a rank exchanges messages or sums, ascending.
std::vector<uint32_t> peersOf(const Communication &all, uint32_t rank);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_COMMUNICATION_H
