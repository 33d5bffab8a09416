//===- Session.h - This process as a rank of an MPI job ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Without MPI's header, so that whoever includes this needs none.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_MPI_SESSION_H
#define CHIMERA_RUNTIME_CHANNEL_MPI_SESSION_H

#include "runtime/channel/Channels.h"

namespace chimera::runtime {

struct MpiOptions {
  /// Moves messages and drives all-reduces while the rank computes. Requires
  /// allowsProgress.
  bool progressThread = false;
  /// Leaves the all-reduces of prepared groups to MPI_Iallreduce. Integers are
  /// the same; floating-point sums differ from the declared fold by rounding.
  bool ownAllReduce = false;
};

/// Which threads of a process call MPI: that of the rank; its progress threads
/// too, but no two at once; or all as they like. What is more than the first
/// makes MPI's calls a little slower.
enum class MpiThreads { One, InTurn, Several };

/// MPI from MPI_Init to MPI_Finalize; one object in a process's life, for the
/// thread that makes it.
class MpiSession {
public:
  /// Asks MPI for as much as `threads` says. Throws std::runtime_error where
  /// MPI does not start.
  explicit MpiSession(MpiThreads threads = MpiThreads::One);
  /// Waits, without spinning, until every rank is here. After a failure leave
  /// by _exit instead: the others may never come.
  ~MpiSession();
  MpiSession(const MpiSession &) = delete;
  MpiSession &operator=(const MpiSession &) = delete;

  uint32_t rank() const { return self; }
  uint32_t ranks() const { return size; }

  /// Whether MPI was asked to let several threads call it, and does.
  bool allowsProgress() const { return severalThreads; }

  /// The ranks on this host, ascending, this one included.
  std::vector<uint32_t> hostRanks() const;

  /// The texts of all ranks, in rank order. Every rank gives one, of at most
  /// kText bytes. Throws std::invalid_argument for a longer one.
  std::vector<std::string> exchange(const std::string &text) const;
  static constexpr size_t kText = 4096;

  /// Channels over all ranks, of memory of the host. Every rank makes (and
  /// destroys) its channels in the same order; each has message streams of its
  /// own. Requests end before their channels.
  std::unique_ptr<Channels> makeChannels(const MpiOptions &options = {}) const;

private:
  uint32_t self = 0, size = 0;
  bool severalThreads = false;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CHANNEL_MPI_SESSION_H
