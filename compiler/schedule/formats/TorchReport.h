//===- TorchReport.h - A checked PyTorch program as text --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_FORMATS_TORCHREPORT_H
#define CHIMERA_COMPILER_SCHEDULE_FORMATS_TORCHREPORT_H

#include "compiler/schedule/formats/TorchProgram.h"

namespace chimera::schedule::torch {

/// The result of `check` as text: the sizes of the program, the stages and
/// sends of each rank, and whether all ranks end with each order of messages.
/// If not, the messages that wait for ever.
std::string describe(const File &file, const Checked &checked);

/// Lines "PATH:LINE:COLUMN: error: …" for the first faults, and how many more
/// there are. Empty if there are none.
std::string describeFaults(std::string_view path, const File &file,
                           const Checked &checked);

/// Whether the program has no fault and can run with NCCL's default order of
/// messages.
bool canRun(const Checked &checked);

} // namespace chimera::schedule::torch

#endif // CHIMERA_COMPILER_SCHEDULE_FORMATS_TORCHREPORT_H
