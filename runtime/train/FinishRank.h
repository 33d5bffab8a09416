//===- FinishRank.h - From the last step to the result ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_FINISHRANK_H
#define CHIMERA_RUNTIME_TRAIN_FINISHRANK_H

#include "runtime/control/Control.h"
#include "runtime/train/TrainingRun.h"

namespace chimera::runtime {

using OnFailure = std::function<void(const std::string &)>;

/// Sends all results that `run` requests from this rank to the root, after the
/// last step. The root then calls run.onResult while the other ranks wait.
/// `loss` is the first loss that was not finite. `seconds` is the time of all
/// steps. `deviceBytes` becomes RankUse::deviceBytes. Returns whether the run
/// continues with its evaluation. If the root's work hangs, calls `fail` with
/// the reason, from any thread. All other errors are thrown.
bool gatherAndSaveResult(const TrainingRun &run, Control &control,
                         const Interpreter &interpreter,
                         const std::optional<Divergence> &loss, double seconds,
                         uint64_t deviceBytes, const Profile &profile,
                         const Trace &trace, Status &status,
                         const OnFailure &fail);

/// Ends a rank after all its other work. The root calls run.onEnd while the
/// other ranks wait.
void endRank(const TrainingRun &run, Control &control, Status &status,
             const OnFailure &fail);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_FINISHRANK_H
