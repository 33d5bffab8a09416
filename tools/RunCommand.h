//===- RunCommand.h - What chimera-run does ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_RUNCOMMAND_H
#define CHIMERA_TOOLS_RUNCOMMAND_H

#include "tools/RunSettings.h"

namespace chimera {

/// Runs as asked and returns the process's exit status. Throws std::exception
/// for what a user can put right.
int runCommand(const RunSettings &settings);

} // namespace chimera

#endif // CHIMERA_TOOLS_RUNCOMMAND_H
