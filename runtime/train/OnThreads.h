//===- OnThreads.h - Ranks as threads of this process -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_ONTHREADS_H
#define CHIMERA_RUNTIME_TRAIN_ONTHREADS_H

#include "runtime/control/Control.h"
#include "runtime/train/FinishRank.h"
#include "runtime/watch/StatusPage.h"

namespace chimera::runtime {

/// Throws std::invalid_argument for more ranks than kMaxThreads.
void checkThreadCount(uint32_t ranks);

/// Calls `work` for each rank of `run` on a separate thread and returns when
/// all threads have ended. Meanwhile it handles signals.
///
/// A rank fails if `work` throws, if `work` calls `fail`, or if the rank makes
/// no progress for longer than the timeout (HangDetector.h). If a rank fails,
/// all waits of `controls` are aborted, and this function throws RunFailure
/// with the report on all ranks. If another rank does not end within
/// `run.patience`, this function instead writes the report and calls
/// endProcess.
void runOnThreads(
    const TrainingRun &run, StatusPage &page,
    const std::vector<std::unique_ptr<Control>> &controls,
    const std::function<void(uint32_t rank, const OnFailure &fail)> &work);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_ONTHREADS_H
