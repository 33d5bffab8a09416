//===- RunCommand.h - Command of chimera-run --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_RUNCOMMAND_H
#define CHIMERA_TOOLS_RUNCOMMAND_H

#include "tools/RunSettings.h"

namespace chimera {

/// Trains, generates or calibrates, as the settings say, and returns the exit
/// status of the process. Throws std::exception for errors that a user can fix.
int runCommand(const RunSettings &settings);

} // namespace chimera

#endif // CHIMERA_TOOLS_RUNCOMMAND_H
