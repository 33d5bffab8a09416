//===- RunOnHost.h - A run on one host --------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A run with all ranks in this process. Run.h requires that ranks have their
// threads and memory. runOnHost provides them: it checks that the host has
// enough memory, divides the host's cores among the ranks, and then runs.
// RunAsRank.h does the same for one rank of a job, RunSequential.h for training
// without a pipeline.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_RUNONHOST_H
#define CHIMERA_RUNTIME_TRAIN_RUNONHOST_H

#include "runtime/train/Launch.h"
#include "runtime/train/Run.h"

namespace chimera::runtime {

/// The share of each rank on a host.
struct HostResources {
  uint32_t ranks;      ///< number of the run's ranks on this host
  RankThreads threads; ///< of each rank
};

/// The options of a run for the resources of its host.
struct HostOptions {
  /// The number of compute threads of each rank; 0 for an equal share of the
  /// cores.
  uint32_t threads = 0;
  /// The first function that is called on each rank's compute thread, with the
  /// number of threads for the rank's computations. If set, it replaces
  /// TrainingRun::onThread.
  std::function<void(uint32_t threads)> setThreads = {};
  /// Called once, in the root's process, after all checks have passed and
  /// before the first step. If it throws, the run fails.
  std::function<void(const HostResources &)> onReady = {};
};

/// Runs all ranks in this process: as threads (runInProcess) or, with a `seed`,
/// on simulated devices (runSimulated). There is no progress thread. Throws the
/// exceptions of these two functions, of a stage and of onReady. Throws
/// std::invalid_argument if the host's memory is too small.
void runOnHost(TrainingRun run, const HostOptions &use,
               std::optional<uint64_t> seed = {});

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_RUNONHOST_H
