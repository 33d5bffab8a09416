//===- Session.h - This process as a rank of an MPI job ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// This header does not include mpi.h, so its users need no MPI headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_MPI_SESSION_H
#define CHIMERA_RUNTIME_CHANNEL_MPI_SESSION_H

#include "runtime/channel/Channels.h"

namespace chimera::runtime {

struct MpiOptions {
  /// While the rank computes, a separate thread moves messages and drives
  /// all-reduces. Requires allowsProgressThread.
  bool progressThread = false;
  /// The groups of Channels::prepare use MPI_Iallreduce. Integer sums are the
  /// same as without this option. Floating-point sums differ by rounding,
  /// because MPI chooses the order of summation.
  bool transportAllReduce = false;
};

/// Which threads of a process may call MPI. The names are those of MPI's thread
/// levels, such as MPI_THREAD_FUNNELED. Funneled: only the rank's thread.
/// Serialized: the rank's thread and its progress threads, but only one at a
/// time. Multiple: all threads at any time. Serialized and Multiple make MPI
/// calls a little slower.
enum class MpiThreads { Funneled, Serialized, Multiple };

/// A session of MPI: the constructor calls MPI_Init_thread, and the destructor
/// calls MPI_Finalize. Create only one session in a process. Only the thread
/// that creates the session may use it.
class MpiSession {
public:
  /// Requests the thread level of `threads` from MPI. Throws std::runtime_error
  /// if MPI does not start, or if it offers less than Funneled. If it offers
  /// less than requested, but at least Funneled, see allowsProgressThread.
  explicit MpiSession(MpiThreads threads = MpiThreads::Funneled);
  /// Waits until every rank destroys its session, without spinning. After a
  /// failure, end the process with _exit instead, because the other ranks may
  /// never destroy their sessions.
  ~MpiSession();
  MpiSession(const MpiSession &) = delete;
  MpiSession &operator=(const MpiSession &) = delete;

  uint32_t rank() const { return self; }
  uint32_t ranks() const { return size; }

  /// Whether a second thread may call MPI: the constructor has requested this
  /// from MPI, and MPI allows it.
  bool allowsProgressThread() const { return severalThreads; }

  /// The ranks on this host, ascending, including this rank.
  std::vector<uint32_t> hostRanks() const;

  /// Sends `text` to all ranks, and returns the texts of all ranks in rank
  /// order. This is a collective call. Throws std::invalid_argument if `text`
  /// is longer than kText bytes.
  std::vector<std::string> allGatherTexts(const std::string &text) const;
  static constexpr size_t kText = 4096;

  /// Makes channels between all ranks, for host memory. This is a collective
  /// call: every rank makes and destroys its channels in the same order.
  /// Different channels of a rank are independent. Requests must be destroyed
  /// before their channels.
  std::unique_ptr<Channels> makeChannels(const MpiOptions &options = {}) const;

private:
  uint32_t self = 0, size = 0;
  bool severalThreads = false;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CHANNEL_MPI_SESSION_H
