//===- RunFiles.h - Which files a run reads and writes ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_RUNFILES_H
#define CHIMERA_TOOLS_RUNFILES_H

#include "runtime/program/Program.h"
#include "runtime/stage/torch/WeightNames.h"
#include "tools/RunSettings.h"

namespace chimera {

/// Throws std::exception where an output of the run cannot be written, or is
/// also something else that the run reads or writes: its program, its text,
/// another output, or what its standard output or error go to. Reads nothing.
void checkFiles(const RunSettings &settings);

/// Where the weights of a run go that does not end as it was asked to, beside
/// those of one that does; empty where `save` is no regular file, but a pipe,
/// say.
std::string lastFiniteOf(const std::string &save);

/// Throws std::exception where there is no room for the weights and gradients
/// that are to be saved. Only the root of a job writes them, so it asks.
void checkRoom(const RunSettings &settings, const program::ProgramT &program,
               const runtime::WeightNames &names);

} // namespace chimera

#endif // CHIMERA_TOOLS_RUNFILES_H
