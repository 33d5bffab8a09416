//===- Join.h - A process becomes a rank of a job ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CONTROL_JOIN_JOIN_H
#define CHIMERA_RUNTIME_CONTROL_JOIN_JOIN_H

#include "runtime/channel/Channels.h"
#include "runtime/control/tcp/Control.h"
#include "runtime/control/tcp/Meeting.h"

namespace chimera::runtime {

/// What moves values between the ranks of a job.
enum class JobTransport { Mpi, Tcp };

struct JoinOptions {
  JobTransport transport = JobTransport::Tcp;
  /// Where ranks meet, and who this one is. Without MPI only.
  StoreAddress store = {};
  uint32_t rank = 0, ranks = 1;
  /// With MPI only: whether a thread of the rank may move messages.
  bool mayProgress = false;
};

/// This process as a rank of a job, whatever has started it. One object in a
/// process's life.
class JoinedJob {
public:
  /// Starts MPI, if it is wanted. Throws std::runtime_error where it does not
  /// start or was left out of this build.
  explicit JoinedJob(const JoinOptions &options);
  /// Waits until all ranks leave, over MPI. After a failure leave by _exit
  /// instead: the others may never come.
  ~JoinedJob();
  JoinedJob(const JoinedJob &) = delete;
  JoinedJob &operator=(const JoinedJob &) = delete;

  uint32_t rank() const;
  uint32_t ranks() const;
  /// Whether a thread may move messages while this rank computes and, where
  /// one has to be asked for, whether it can be.
  bool allowsProgress() const;

  /// Finds the other ranks. Throws std::runtime_error where some are not there
  /// before `timeout`, or cannot be reached; knows no timeout over MPI: the
  /// caller needs a Watchdog. To be called once.
  void meet(std::chrono::milliseconds timeout,
            const OnLongWait &onLongWait = {});

  /// The processes of the other ranks of this host that are known, and a name
  /// that the ranks of this host alone share, for claimLocally. Both are empty
  /// before the exchange of `meet`.
  std::vector<Meeting::Process> hostProcesses() const;
  std::string claimName() const;

  /// These require `meet`.
  std::vector<uint32_t> hostRanks() const;
  Control &control();
  /// With or without a thread that moves messages over MPI, and with sums left
  /// to MPI or not. To be called once, by all ranks.
  std::unique_ptr<Channels> makeChannels(bool progressThread,
                                         bool ownAllReduce);

private:
  struct State;
  const std::unique_ptr<State> state;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CONTROL_JOIN_JOIN_H
