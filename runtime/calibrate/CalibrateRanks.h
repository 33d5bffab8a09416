//===- CalibrateRanks.h - The ranks that calibrate --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A calibration has the ranks that a run would have: threads of this process,
// or this process as one rank of a job.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CALIBRATE_CALIBRATERANKS_H
#define CHIMERA_RUNTIME_CALIBRATE_CALIBRATERANKS_H

#include "runtime/calibrate/Calibrate.h"
#include "runtime/train/Accelerator.h"
#include "runtime/train/Agreement.h"
#include "runtime/train/RunAsRank.h"

namespace chimera::runtime {

/// How ranks calibrate.
struct CalibrationUse {
  StageFactory stages;  ///< of transformers
  uint32_t threads = 0; ///< of each rank; 0: an equal share of the cores
  /// Called first on each thread on which a rank computes.
  std::function<void(uint32_t threads)> setThreads;
  std::chrono::milliseconds timeout; ///< of waits for other ranks
  /// Whose devices the ranks have, as in TrainingRun; else they compute on the
  /// host.
  Accelerator *accelerator = nullptr;
  /// Whether all-reduces are the transport's own, as in TrainingRun.
  bool ownAllReduce = false;
  double effort = 1; ///< as in CalibrationOptions
  /// Called once, in the process of rank 0, with what was found and what ranks
  /// have of its host. What it throws is a failure.
  std::function<void(const Calibration &, const HostShare &)> onFound;
};

/// By so many ranks that are threads of this process. Throws what the stages,
/// devices, waits and onFound throw.
void calibrateOnThreads(uint32_t ranks, const CalibrationUse &use);

/// By this process as one rank of a job, all of whose ranks must have `shared`
/// in common. Once in a process's life. Throws, and ends the process, as
/// runAsRank does; and throws std::invalid_argument for a job of one rank.
void calibrateAsRank(const CalibrationUse &use, const JobUse &jobUse,
                     const std::vector<Shared> &shared);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CALIBRATE_CALIBRATERANKS_H
