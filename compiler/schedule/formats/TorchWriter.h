//===- TorchWriter.h - Writes schedule files of PyTorch ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_FORMATS_TORCHWRITER_H
#define CHIMERA_COMPILER_SCHEDULE_FORMATS_TORCHWRITER_H

#include "compiler/schedule/model/Schedule.h"

#include <optional>
#include <string>

namespace chimera::schedule::torch {

/// A schedule as a file of computations (compute_only in TorchCsv.h), with a
/// row for each worker. If the schedule has slots, idle ones are blank cells.
/// Returns nothing if the schedule has something that the format cannot hold.
/// Then `error` names it.
std::optional<std::string> write(const Problem &problem,
                                 const Schedule &schedule, std::string &error);

} // namespace chimera::schedule::torch

#endif // CHIMERA_COMPILER_SCHEDULE_FORMATS_TORCHWRITER_H
