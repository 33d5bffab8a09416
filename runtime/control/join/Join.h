//===- Join.h - A process joins its job as a rank ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CONTROL_JOIN_JOIN_H
#define CHIMERA_RUNTIME_CONTROL_JOIN_JOIN_H

#include "runtime/channel/Channels.h"
#include "runtime/control/tcp/Control.h"
#include "runtime/control/tcp/PeerExchange.h"

namespace chimera::runtime {

/// The transport of values between the ranks of a job.
enum class JobTransport { Mpi, Tcp };

struct JoinOptions {
  JobTransport transport = JobTransport::Tcp;
  /// Used without MPI only: the address at which ranks find each other, and
  /// this rank's number.
  StoreAddress store = {};
  uint32_t rank = 0, ranks = 1;
  /// Used with MPI only: allows a separate thread that moves messages.
  bool allowProgressThread = false;
};

/// This process as a rank of a job, independent of its launcher. Create only
/// one in a process.
class JoinedJob {
public:
  /// Starts MPI if `options` asks for it. Throws std::runtime_error if MPI does
  /// not start or is not part of this build.
  explicit JoinedJob(const JoinOptions &options);
  /// With MPI, waits until all ranks leave. After a failure end the process
  /// with _exit instead, because the other ranks may never leave.
  ~JoinedJob();
  JoinedJob(const JoinedJob &) = delete;
  JoinedJob &operator=(const JoinedJob &) = delete;

  uint32_t rank() const;
  uint32_t ranks() const;
  /// Whether a thread may move messages while this rank computes. With MPI this
  /// depends on the thread level that MPI provides.
  bool allowsProgressThread() const;

  /// Finds the other ranks. Throws std::runtime_error if some do not come
  /// before `timeout` or cannot be reached. The exchange over MPI has no
  /// timeout, so the caller needs a Watchdog. Call it once.
  void connect(std::chrono::milliseconds timeout,
               const LongWaitHandler &onLongWait = {});

  /// The processes of the other known ranks of this host, and a name for
  /// claimSocketName that only the ranks of this host share. Both are empty
  /// before `connect` has exchanged the addresses.
  std::vector<PeerInfo::Process> hostProcesses() const;
  std::string claimName() const;

  /// The following functions require a successful `connect`.
  std::vector<uint32_t> hostRanks() const;
  Control &control();
  /// Makes the channels. Over MPI, `progressThread` moves messages on a
  /// separate thread, and `transportAllReduce` leaves sums to MPI_Iallreduce. A
  /// collective call, made once by all ranks.
  std::unique_ptr<Channels> makeChannels(bool progressThread,
                                         bool transportAllReduce);

private:
  struct State;
  const std::unique_ptr<State> state;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CONTROL_JOIN_JOIN_H
