//===- TrainingOptions.h - Numbers of a training for one run ----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The options of chimera-run that override numbers of the program's
// chimera.training: the learning rate and its schedule, the betas, weight decay
// and the seed. These numbers are not part of the proof of a program, so a run
// may have others than the program without a new compilation.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_TRAININGOPTIONS_H
#define CHIMERA_TOOLS_TRAININGOPTIONS_H

#include "runtime/program/Program.h"
#include "runtime/train/Agreement.h"
#include "tools/RunSettings.h"

namespace CLI {
class App;
}

namespace chimera {

/// Adds the options to `app`, which stores their values in `settings`.
void addTrainingOptions(CLI::App &app, RunSettings &settings);

/// The names of the options, except --seed, which also changes runs that do not
/// train a model.
std::vector<std::string> optimizerOptions();

/// Replaces the numbers of `program` for which the user gave an option. If the
/// user gives another schedule of the learning rate, removes the program's
/// numbers that this schedule does not use. Throws std::invalid_argument if an
/// option has no effect, or if the resulting numbers contradict each other.
void applyTrainingOptions(const RunSettings &settings,
                          program::ProgramT &program);

/// The values of the options, which all ranks must have in common.
std::vector<runtime::AgreedValue>
agreedTrainingOptions(const RunSettings &settings);

} // namespace chimera

#endif // CHIMERA_TOOLS_TRAININGOPTIONS_H
