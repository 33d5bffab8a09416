//===- FinishRank.h - From the last step to the result ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_FINISHRANK_H
#define CHIMERA_RUNTIME_TRAIN_FINISHRANK_H

#include "runtime/control/Control.h"
#include "runtime/train/Run.h"

namespace chimera::runtime {

using Fail = std::function<void(const std::string &)>;

/// What each rank does after its last step: it sends what `run` asks for to the
/// root, which calls run.onResult while the others wait. `loss` is the first
/// that was not finite, `seconds` how long the steps took, `deviceBytes` a part
/// of RankUse. Returns whether the run goes on to its evaluation. Calls `fail`
/// with the reason, from any thread, where the root hangs; throws all else.
bool saveResult(const TrainingRun &run, Control &control,
                const Interpreter &interpreter,
                const std::optional<Divergence> &loss, double seconds,
                uint64_t deviceBytes, const Profile &profile,
                const Trace &trace, Status &status, const Fail &fail);

/// And when there is nothing left to do: the root calls run.onEnd likewise.
void endRank(const TrainingRun &run, Control &control, Status &status,
             const Fail &fail);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_FINISHRANK_H
