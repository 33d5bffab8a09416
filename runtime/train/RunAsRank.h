//===- RunAsRank.h - A run with this process as a rank ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A run in which a launcher, or a user by hand, starts one process per rank.
// runAsRank connects the processes, divides the cores and the memory of each
// host among the ranks that are really on it, and runs this process's rank.
//
// runAsRank is in a separate library, chimera_train_job, because it needs
// LibTorch's TCPStore.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_RUNASRANK_H
#define CHIMERA_RUNTIME_TRAIN_RUNASRANK_H

#include "runtime/control/join/Join.h"
#include "runtime/train/RunOnHost.h"

namespace chimera::runtime {

/// The transport for a job: MPI under mpirun and srun, TCP under other
/// launchers.
JobTransport transportOf(const Job &job);

/// The way in which this process joins a job and reports its failure.
struct JobOptions {
  JobTransport transport = JobTransport::Tcp;
  /// The job according to the launcher (findJob), if there is one. MPI does not
  /// need it. TCP needs it, with a MasterAddress.
  std::optional<Job> job = {};
  /// Whether a rank has a thread that moves messages. Only over MPI.
  ProgressMode progress = ProgressMode::Auto;
  /// How MPI starts (JoinOptions). Only over MPI.
  decltype(JoinOptions::startMpi) startMpi = loadMpi;
  /// If this rank fails and no report says why, this is called with the reason
  /// before the process ends. If it is not set, the reason is written to
  /// standard error.
  std::function<void(const std::string &reason)> onFailure = {};
};

/// The options for joining the other ranks. Throws std::invalid_argument if the
/// environment does not say how to find them.
JoinOptions joinOptions(const JobOptions &use, bool allowProgressThread);

/// Checks that can fail before the ranks connect. Throws std::invalid_argument
/// if the job has another number of ranks than the program, or if the
/// environment does not say how to find the other ranks.
void checkJob(const program::ProgramT &program, const JobOptions &use);

/// Call this if this process fails before it has called runAsRank. The other
/// ranks of the job wait for it. If the ranks connect over TCP, tells them the
/// reason. Then calls waitForFirstReport. Takes a few seconds,
/// or at rank 0 up to 30 s (reportFailureAtStore).
void reportFailureToJob(const std::string &reason) noexcept;

/// Runs this process's rank of a job: connects to the other ranks, divides the
/// host among the ranks on it, runs (runInJob) and leaves the job. May be
/// called once in a process. run.timeout also limits the time until all ranks
/// have started and, at the end, the time until all ranks have left.
///
/// Before the ranks are connected it throws: what a stage throws, what checkJob
/// throws, and std::runtime_error if MPI does not start. After that, other
/// ranks wait for this one, so it does not throw. If this rank fails, or hears
/// that another one failed, the process ends (endProcess) with status 1.
/// JobOptions::onFailure is called with the reason if other ranks do not start
/// in time, if a host's memory is too small, or if onReady throws.
void runAsRank(TrainingRun run, const HostOptions &hostOptions,
               const JobOptions &jobOptions);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_RUNASRANK_H
