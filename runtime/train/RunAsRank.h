//===- RunAsRank.h - A run of which this process is a rank ---- -*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A launcher, or a user by hand, starts a process for each rank. What is here
// brings them together, has the ranks that are really on one host share it, and
// runs this process's rank.
//
// Linked by chimera_train_job, apart from the rest of the folder: it brings
// LibTorch's TCPStore and, where it was found, MPI.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_RUNASRANK_H
#define CHIMERA_RUNTIME_TRAIN_RUNASRANK_H

#include "runtime/control/join/Join.h"
#include "runtime/train/RunOnHost.h"

namespace chimera::runtime {

/// The transport that fits the launcher of a job: MPI under mpirun and srun,
/// else TCP.
JobTransport transportOf(const Job &job);

/// How this process is a rank.
struct JobUse {
  JobTransport transport = JobTransport::Tcp;
  /// What the launcher says (findJob), if there is one. MPI knows by itself;
  /// TCP needs it, with a place.
  std::optional<Job> job = {};
  /// Whether a rank has a thread that moves messages. Over MPI only.
  ProgressWish progress = ProgressWish::Auto;
  /// Called with the reason when this rank fails and no report tells why,
  /// before the process ends. Without it the reason is written to standard
  /// error.
  std::function<void(const std::string &reason)> onFailure = {};
};

/// How this process meets the others. Throws std::invalid_argument where
/// nothing tells how to find them.
JoinOptions joinOptions(const JobUse &use, bool mayProgress);

/// What can be known to fail before the ranks meet. Throws
/// std::invalid_argument where the program has another number of ranks than
/// the job, and where nothing tells how to find the others.
void checkJob(const program::ProgramT &program, const JobUse &use);

/// To be called where this process fails and has not called runAsRank. The
/// other ranks of its job wait for it: where they meet over TCP they are told
/// the reason. Otherwise gives way. Takes some seconds at most.
void decline(const std::string &reason) noexcept;

/// Runs this process's rank of a job: meets the other ranks, shares the host
/// with those that are on it, runs (runInJob) and leaves the job. Once in a
/// process's life. run.timeout also limits how long ranks wait for all to start
/// and, at the end, for all to leave.
///
/// Until the ranks meet it throws: what a stage throws, what checkJob throws,
/// and std::runtime_error where MPI does not start. From then on others wait
/// for this rank, so it throws nothing: if this rank fails, or it hears that
/// another one did, the process ends (endProcess) with status 1. Ranks that do
/// not come, a host whose memory is too small and what onReady throws are told
/// by JobUse::onFailure.
void runAsRank(TrainingRun run, const HostUse &hostUse, const JobUse &jobUse);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_RUNASRANK_H
