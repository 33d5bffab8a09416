//===- CalibrateRanks.h - The ranks that calibrate --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A calibration uses the ranks that a run would have: either threads of this
// process, or this process as one rank of a job.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CALIBRATE_CALIBRATERANKS_H
#define CHIMERA_RUNTIME_CALIBRATE_CALIBRATERANKS_H

#include "runtime/calibrate/Calibrate.h"
#include "runtime/train/Accelerator.h"
#include "runtime/train/Agreement.h"
#include "runtime/train/RunAsRank.h"

namespace chimera::runtime {

/// The settings of a calibration.
struct CalibrationSetup {
  StageFactory stages;  ///< makes stages of transformers
  uint32_t threads = 0; ///< of a rank; 0: an equal share of the cores
  /// Called first, on each thread on which a rank computes.
  std::function<void(uint32_t threads)> setThreads;
  std::chrono::milliseconds timeout; ///< of waits for other ranks
  /// Makes the ranks' devices, as in TrainingRun. Null: ranks compute on the
  /// host.
  Accelerator *accelerator = nullptr;
  /// Whether all-reduces use the sum of the transport, as in TrainingRun.
  bool transportAllReduce = false;
  double effort = 1; ///< as in CalibrationOptions
  /// Called once, in the process of rank 0, with the results and the share of
  /// each rank on the host of rank 0. If it throws, the calibration fails.
  std::function<void(const Calibration &, const HostResources &)> onResult;
};

/// Calibrates with `ranks` threads of this process as ranks. Throws the
/// exceptions of stages, devices, waits and onResult.
void calibrateOnThreads(uint32_t ranks, const CalibrationSetup &use);

/// Calibrates with this process as one rank of a job. `agreedValues` must be
/// equal on all ranks of the job. Call it only once in a process. If the
/// calibration fails, throws or ends the process, as runAsRank does. Throws
/// std::invalid_argument if the job has only one rank.
void calibrateAsRank(const CalibrationSetup &use, const JobOptions &jobOptions,
                     const std::vector<AgreedValue> &agreedValues);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CALIBRATE_CALIBRATERANKS_H
