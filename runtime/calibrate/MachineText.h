//===- MachineText.h - A calibration as text --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CALIBRATE_MACHINETEXT_H
#define CHIMERA_RUNTIME_CALIBRATE_MACHINETEXT_H

#include "runtime/calibrate/Calibrate.h"

#include <string>

namespace chimera::runtime {

/// The calibration as the operation `chimera.machine @here`. A pipeline uses it
/// with `on @here`. A comment above the operation says how the machine was
/// measured and how well the lines fit. `where` describes the ranks, such as "a
/// process a rank over MPI, 1 thread each".
std::string machineText(const Calibration &found, const std::string &where);

/// The calibration as a table for people.
std::string machineTable(const Calibration &found);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CALIBRATE_MACHINETEXT_H
