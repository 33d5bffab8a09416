//===- Join.h - A process joins its job as a rank ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CONTROL_JOIN_JOIN_H
#define CHIMERA_RUNTIME_CONTROL_JOIN_JOIN_H

#include "runtime/channel/mpi/Session.h"
#include "runtime/control/tcp/Control.h"
#include "runtime/control/tcp/PeerExchange.h"

namespace chimera::runtime {

/// The transport of values between the ranks of a job.
enum class JobTransport { Mpi, Tcp };

struct JoinOptions {
  JobTransport transport = JobTransport::Tcp;
  /// Used without MPI only: the address of the store at which ranks find each
  /// other, this rank's number, and the number of ranks.
  StoreAddress store = {};
  uint32_t rank = 0, ranks = 1;
  /// Used with MPI only: allows that a second thread moves messages.
  bool allowProgressThread = false;
  /// Used with MPI only: startMpi, for programs that link MPI, or loadMpi.
  std::function<std::unique_ptr<MpiSession>(MpiThreads)> startMpi = loadMpi;
};

/// This process as a rank of a job, with any launcher. Create only one object
/// in a process.
class JoinedJob {
public:
  /// Starts MPI if `options.transport` is Mpi. Throws what
  /// `options.startMpi` throws.
  explicit JoinedJob(const JoinOptions &options);
  /// With MPI, waits until all ranks destroy their objects. After a failure,
  /// end the process with _exit instead, because the other ranks may never do
  /// this.
  ~JoinedJob();
  JoinedJob(const JoinedJob &) = delete;
  JoinedJob &operator=(const JoinedJob &) = delete;

  uint32_t rank() const;
  uint32_t ranks() const;
  /// Whether a second thread may move messages while this rank computes. With
  /// MPI this depends on the thread level that MPI provides.
  bool allowsProgressThread() const;

  /// Finds the other ranks and connects to them. Throws std::runtime_error if
  /// some ranks do not publish their addresses before `timeout` passes or
  /// cannot be reached. The exchange of addresses over MPI has no timeout, so
  /// the caller needs a Watchdog. Call it once.
  void connect(std::chrono::milliseconds timeout,
               const LongWaitHandler &onLongWait = {});

  /// hostProcesses: the processes of the other ranks of this host, as far as
  /// they are known. hostLockName: a name for tryLockSocketName that only the
  /// ranks of this job on this host use. Both are empty before `connect` has
  /// exchanged the addresses.
  std::vector<PeerInfo::Process> hostProcesses() const;
  std::string hostLockName() const;

  /// The following functions require a successful `connect`.
  std::vector<uint32_t> hostRanks() const;
  Control &control();
  /// Makes the channels. This is a collective call, made once by all ranks.
  /// Over MPI, `progressThread` moves messages on a separate thread, and
  /// `transportAllReduce` uses MPI_Iallreduce for sums.
  std::unique_ptr<Channels> makeChannels(bool progressThread,
                                         bool transportAllReduce);

private:
  struct State;
  const std::unique_ptr<State> state;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CONTROL_JOIN_JOIN_H
