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

/// Throws std::invalid_argument for more ranks than kMostThreads.
void expectThreads(uint32_t ranks);

/// Does `work` for each rank of `run` on a thread of its own, and returns when
/// all have ended. It is the one that listens to signals meanwhile.
///
/// A rank fails by throwing, by calling the function that it is given, or by
/// standing still for longer than the timeout (Standstill.h). Then the waits of
/// all `controls` end, and this throws RunFailure with the report on all ranks.
/// If another rank then computes on for seconds, it writes the report and calls
/// endProcess.
void runOnThreads(
    const TrainingRun &run, StatusPage &page,
    const std::vector<std::unique_ptr<Control>> &controls,
    const std::function<void(uint32_t rank, const Fail &fail)> &work);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_ONTHREADS_H
