//===- RunOnHost.h - A run that shares out its host ----------- -*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Run.h runs ranks that have their threads and their memory. What is here gives
// them both: it refuses what the host cannot hold, shares the cores of the host
// among its ranks, and then runs. RunAsRank.h does the same for one rank of a
// job, RunSequential.h for training without a pipeline.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_RUNONHOST_H
#define CHIMERA_RUNTIME_TRAIN_RUNONHOST_H

#include "runtime/train/Launch.h"
#include "runtime/train/Run.h"

namespace chimera::runtime {

/// What the ranks on one host have.
struct HostShare {
  uint32_t ranks;      ///< of the run, on this host
  RankThreads threads; ///< of each of them
};

/// What a run wants of its host, and whom it tells what it has.
struct HostUse {
  /// The threads that each rank computes with; 0: an equal share of the cores.
  uint32_t threads = 0;
  /// Called first on each thread on which a rank computes, with the number of
  /// threads to compute with. If set, it replaces TrainingRun::onThread.
  std::function<void(uint32_t threads)> setThreads = {};
  /// Called once, in the root's process, when nothing is left to be refused and
  /// no step has begun. What it throws fails the run.
  std::function<void(const HostShare &)> onReady = {};
};

/// Runs all ranks in this process: as threads (runInProcess) or, with a `seed`,
/// on simulated devices (runSimulated). Throws what those throw, what a stage
/// or onReady throws, and std::invalid_argument where the memory of the host is
/// too small or there are fewer devices than ranks. There is never a progress
/// thread.
void runOnHost(TrainingRun run, const HostUse &use,
               std::optional<uint64_t> seed = {});

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_RUNONHOST_H
