//===- Run.h - A training run from first step to result ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A training run whose ranks are either threads of this process or processes of
// a job. Each rank runs its interpreter. One rank, the root, has the losses.
// After the last step, the root gathers the weights and reports the result. The
// other ranks sleep until the root is done.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_RUN_H
#define CHIMERA_RUNTIME_TRAIN_RUN_H

#include "runtime/control/Control.h"
#include "runtime/train/TrainingRun.h"

namespace chimera::runtime {

/// The number of steps whose samples a worker reads ahead in this run.
uint32_t readAheadOf(const TrainingRun &run, uint32_t worker);

/// The bytes of the samples that a rank of each worker reads ahead.
std::vector<uint64_t> readAheadBytesOf(const TrainingRun &run);

/// Checks the run before anything runs. Makes every stage of the program once
/// and destroys it. Throws what the factory throws. Throws
/// std::invalid_argument if the run's options contradict each other.
void checkRun(const TrainingRun &run);

/// Runs all ranks as threads. Throws RunFailure if a rank fails, and
/// std::invalid_argument for more than kMaxThreads ranks. If a rank fails and
/// another one does not stop within `run.patience`, this function instead
/// writes the report and calls endProcess. The caller must have called
/// checkCapacity, as runOnHost does.
void runInProcess(const TrainingRun &run);

/// Runs all ranks on simulated devices, on one thread, in an order that the
/// seed determines (see runtime/device/simulated). Gathers the result on
/// threads, like runInProcess. Throws RunFailure if a rank fails, if operations
/// of ranks wait for each other in a cycle, or if two operations use the same
/// memory without synchronisation. The message contains the seed. Steps have no
/// timeout. Throws std::invalid_argument for more than kMaxThreads ranks, and
/// if the run requests a profile or a trace, since simulated devices measure no
/// times.
void runSimulated(const TrainingRun &run, uint64_t seed);

/// Runs this process's rank of a job. The job must have as many ranks as the
/// program. The caller must have called checkCapacity, as runAsRank does.
/// `channels` must use memory of `device`. If any rank of the host fails or
/// dies, the process ends (endProcess) with status 1, and one rank reports. If
/// run.timeout is set, a process that is stopped (SIGSTOP) for longer than the
/// timeout counts as failed. A rank whose status page the others cannot open
/// counts as a separate host.
void runInJob(const TrainingRun &run, Control &control, Device &device,
              Channels &channels, const std::vector<uint32_t> &hostRanks);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_RUN_H
