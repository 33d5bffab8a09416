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

/// Trains the model of run.program on one device, without a pipeline
/// (trainSequentially), on the calling thread. Otherwise it behaves like
/// runOnHost: it handles the same signals, and calls onStep and onResult as the
/// only rank. `stages` is the number of the program's stages, or 1. This
/// function makes the stages by calls of run.stages with numbers from 0 on. If
/// `stages` is 1, run.stages must make a stage that has the whole model. The
/// result always has weights and gradients; its ranks and profiles are empty.
/// run.timeout applies only to onResult and onEnd. If one of them hangs, this
/// is reported on standard error, and the process ends (endProcess) with status
/// 1.
///
/// Throws what a stage, the data or a function of `run` or `use` throws. Throws
/// std::invalid_argument if the host's memory is too small.
void runSequential(TrainingRun run, const HostOptions &use, uint32_t stages);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_RUNSEQUENTIAL_H
