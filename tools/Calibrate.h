//===- Calibrate.h - chimera-run --calibrate --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_CALIBRATE_H
#define CHIMERA_TOOLS_CALIBRATE_H

#include "runtime/train/Launch.h"
#include "tools/RunSettings.h"

namespace chimera {

/// Measures the machine, and writes and prints the result. The ranks are
/// threads of this process. If the settings choose a transport between
/// processes, this process is one rank of `job`, and rank 0 writes and prints.
/// Throws std::exception on failure; ends the process if other ranks wait for
/// this one.
void calibrateMachine(const RunSettings &settings,
                      const std::optional<runtime::Job> &job);

} // namespace chimera

#endif // CHIMERA_TOOLS_CALIBRATE_H
