//===- Commands.h - Commands of chimera-run ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_COMMANDS_H
#define CHIMERA_TOOLS_COMMANDS_H

#include "runtime/program/Program.h"
#include "runtime/train/Launch.h"
#include "tools/RunSettings.h"

namespace chimera {

/// Trains, generates or calibrates, as the settings say, and returns the exit
/// status of the process. Throws std::exception for errors that a user can fix.
int runCommand(const RunSettings &settings);

/// Measures the machine, and writes and prints the result. The ranks are
/// threads of this process, unless the settings choose a transport between
/// processes. With such a transport, this process is one rank of `job`, and
/// rank 0 writes and prints. On failure throws std::exception, or ends the
/// process if other ranks wait for this rank.
void calibrateMachine(const RunSettings &settings,
                      const std::optional<runtime::Job> &job);

/// Generates text after the prompt, with the program's model and the weights of
/// --load, in this process. If tokens are bytes, prints the prompt and its
/// continuation as text. Otherwise prints the numbers of the new tokens, one
/// per line. Throws std::exception if the model cannot predict the next token,
/// if the prompt cannot be read, or if standard output cannot be written.
void generateText(const RunSettings &settings,
                  const program::ProgramT &program);

} // namespace chimera

#endif // CHIMERA_TOOLS_COMMANDS_H
