//===- RunFiles.h - Checks of the files of a run ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_RUNFILES_H
#define CHIMERA_TOOLS_RUNFILES_H

#include "runtime/model/weights/WeightNames.h"
#include "runtime/program/Program.h"
#include "tools/RunSettings.h"

namespace chimera {

/// Throws std::exception if an output of the run cannot be written, or if it is
/// the same file as the program, the text, another output, standard output or
/// standard error. Reads no file.
void checkFiles(const RunSettings &settings);

/// The file for the last finite weights of a run that diverges or that a signal
/// ends: `save` with the suffix ".last-finite". Empty if `save` is empty or not
/// a regular file, for example a pipe.
std::string lastFiniteFile(const std::string &save);

/// Throws std::exception if there is no room on the disk for the weights and
/// gradients that will be saved, or for a checkpoint. In a job, only the root
/// writes them, so only the root calls this.
void checkDiskSpace(const RunSettings &settings,
                    const program::ProgramT &program,
                    const runtime::WeightNames &names);

} // namespace chimera

#endif // CHIMERA_TOOLS_RUNFILES_H
