//===- Calibrate.h - Measures the machine -----------------------*- C++ -*-===//
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

/// Measures the machine by ranks that are threads, or as a rank of `job`, and
/// writes, and prints, what was found; of a job rank 0 does. Throws
/// std::exception where it cannot, and ends the process where other ranks wait
/// for this one.
void calibrateMachine(const RunSettings &settings,
                      const std::optional<runtime::Job> &job);

} // namespace chimera

#endif // CHIMERA_TOOLS_CALIBRATE_H
