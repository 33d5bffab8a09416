//===- News.h - That a rank of an MPI job has failed ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_MPI_NEWS_H
#define CHIMERA_RUNTIME_CHANNEL_MPI_NEWS_H

#include "runtime/channel/mpi/Calls.h"

#include <atomic>
#include <mutex>
#include <thread>

namespace chimera::runtime::mpi {

/// What ends the waits of a rank's channels and of its control, which share
/// one. Made by all ranks together.
class News {
public:
  News();
  ~News();
  News(const News &) = delete;
  News &operator=(const News &) = delete;

  /// Tells all ranks. A thread other than the one that made this leaves that to
  /// the owner's next wait. The first reason counts.
  void abort(const std::string &text);
  bool aborted() const { return isAborted.load(); }

  /// For the owner, in a wait: throws WaitError if any rank has aborted.
  void throwIfAborted();

private:
  void tellOthers();

  const std::thread::id owner = std::this_thread::get_id();
  MPI_Comm communicator;
  std::mutex mutex;
  std::string reason; // guarded by mutex
  std::atomic<bool> isAborted{false};
  bool told = false;
  // Terminated text, or none.
  static constexpr uint64_t kBytes = 512;
  Block heard = makeBlock(kBytes);
  MPI_Request hearing = MPI_REQUEST_NULL;
  Block telling;
  std::vector<MPI_Request> tellings;
};

} // namespace chimera::runtime::mpi

#endif // CHIMERA_RUNTIME_CHANNEL_MPI_NEWS_H
