//===- Session.h - This process as a rank of an MPI job ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// This header does not include mpi.h, so its users need no MPI headers. A
// program starts MPI in one of two ways:
//
// - startMpi links MPI (library chimera_channel_mpi);
// - loadMpi loads a module that links MPI (library chimera_channel). So the
//   program also runs on hosts without MPI, as long as it does not call it.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_MPI_SESSION_H
#define CHIMERA_RUNTIME_CHANNEL_MPI_SESSION_H

#include "runtime/channel/mpi/Channels.h"

namespace chimera::runtime {

/// Which threads of a process may call MPI. The names are those of MPI's thread
/// levels, such as MPI_THREAD_FUNNELED. Funneled: only the rank's thread.
/// Serialized: the rank's thread and its progress threads, but only one at a
/// time. Multiple: all threads at any time. Serialized and Multiple make MPI
/// calls a little slower.
enum class MpiThreads { Funneled, Serialized, Multiple };

/// A session of MPI, between MPI_Init_thread and MPI_Finalize. Only the thread
/// that starts the session may use it.
class MpiSession {
public:
  /// Waits until every rank destroys its session, without spinning. After a
  /// failure, end the process with _exit instead, because the other ranks may
  /// never destroy their sessions.
  virtual ~MpiSession() = default;

  virtual uint32_t rank() const = 0;
  virtual uint32_t ranks() const = 0;

  /// Whether a second thread may call MPI: the session was started with this,
  /// and MPI allows it.
  virtual bool allowsProgressThread() const = 0;

  /// The ranks on this host, ascending, including this rank.
  virtual std::vector<uint32_t> hostRanks() const = 0;

  /// Sends `text` to all ranks, and returns the texts of all ranks in rank
  /// order. This is a collective call. Throws std::invalid_argument if `text`
  /// is longer than kText bytes.
  virtual std::vector<std::string>
  allGatherTexts(const std::string &text) const = 0;
  static constexpr size_t kText = 4096;

  /// Makes channels between all ranks, for host memory. This is a collective
  /// call: every rank makes and destroys its channels in the same order.
  /// Different channels of a rank are independent. Requests must be destroyed
  /// before their channels.
  virtual std::unique_ptr<Channels>
  makeChannels(const MpiOptions &options = {}) const = 0;
};

/// Starts MPI and requests the thread level of `threads`. Start only one
/// session in a process. Throws std::runtime_error if MPI does not start, or if
/// it offers less than Funneled. If it offers less than requested, but at least
/// Funneled, see MpiSession::allowsProgressThread.
std::unique_ptr<MpiSession> startMpi(MpiThreads threads = MpiThreads::Funneled);

/// Like startMpi, but loads the module for MPI first. Throws
/// std::runtime_error, with advice, if the module was not built or does not
/// load.
std::unique_ptr<MpiSession> loadMpi(MpiThreads threads);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CHANNEL_MPI_SESSION_H
