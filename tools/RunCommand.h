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

/// To be called before a failure is told. Ranks of a job mostly fail alike:
/// rank `first` tells at once, which ends the others before they do. One that
/// fails alone is heard a moment later.
void giveWay(uint32_t first = 0);

} // namespace chimera

#endif // CHIMERA_TOOLS_RUNCOMMAND_H
