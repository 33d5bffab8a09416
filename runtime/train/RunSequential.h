//===- RunSequential.h - A run without a pipeline ------------- -*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_RUNSEQUENTIAL_H
#define CHIMERA_RUNTIME_TRAIN_RUNSEQUENTIAL_H

#include "runtime/train/RunOnHost.h"

namespace chimera::runtime {

/// Runs what run.program describes on one device (trainSequentially), on the
/// calling thread, as runOnHost runs it with a pipeline: it hears the same
/// signals, and calls onStep and onResult as the only rank. run.stages is asked
/// for the stages below `stages`: all of the program's, or 1, which then is the
/// whole model. The result always holds weights and gradients; its ranks and
/// profiles are empty. run.timeout limits only onResult, where that hangs: it
/// is then told on standard error, and the process ends (endProcess) with
/// status 1.
///
/// Throws what a stage, the data or one of the functions of `run` and `use`
/// throws, and std::invalid_argument where the memory of the host is too small.
void runSequential(TrainingRun run, const HostUse &use, uint32_t stages);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_RUNSEQUENTIAL_H
