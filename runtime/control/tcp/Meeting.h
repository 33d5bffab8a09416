//===- Meeting.h - How ranks find each other --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each rank says where it listens and on which host it is. What carries that is
// somebody else's: a store that all ranks can reach, or MPI.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CONTROL_TCP_MEETING_H
#define CHIMERA_RUNTIME_CONTROL_TCP_MEETING_H

#include "runtime/channel/tcp/Mesh.h"

#include <functional>

namespace chimera::runtime {

/// What a rank tells the others, as text without line ends but at its end.
struct Entry {
  std::string host; ///< equal for ranks of one host, or of one container
  tcp::Address address;
  uint64_t secret = 0; ///< see tcp::Book
  int32_t pid = 0;     ///< of its process, in `pidNamespace`
  uint64_t pidNamespace = 0;

  /// Of this process, which listens at `port`. `reachable` names a host that
  /// all ranks reach, or none.
  static Entry own(uint16_t port, const std::string &reachable);

  std::string text() const;
  /// Throws std::runtime_error for what `text` does not write.
  static Entry parse(const std::string &text);
};

/// What a rank knows of all ranks.
struct Meeting {
  Meeting(uint32_t rank, const std::vector<std::string> &entries);

  /// The ranks on the host of this one, ascending, this one included.
  std::vector<uint32_t> hostRanks() const;

  /// Of those the others whose process numbers mean the same here.
  struct Process {
    uint32_t rank;
    int32_t pid;
  };
  std::vector<Process> hostProcesses() const;

  tcp::Book book;
  std::vector<std::string> hosts; ///< by rank
  std::vector<int32_t> pids;      ///< by rank, 0 if it means nothing here
};

/// Where ranks leave their entries: LibTorch's TCPStore.
struct StoreAddress {
  std::string host;
  uint16_t port = 0;
  bool isServed = false; ///< by the launcher; else rank 0 serves it
  std::string prefix;    ///< of keys, for a store that serves several runs
};

/// Told, once, for what a rank still waits.
using OnLongWait = std::function<void(const std::string &what)>;

/// Leaves `own` in the store and returns those of all ranks, in rank order.
/// Rank 0 keeps the store for as long as the process lives. Throws
/// std::runtime_error where some ranks are not there before `timeout`, which it
/// names at rank 0, where one of them does not come (declineAtStore), and where
/// another process is this rank already.
std::vector<std::string> exchangeAtStore(const StoreAddress &store,
                                         uint32_t rank, uint32_t ranks,
                                         const std::string &own,
                                         std::chrono::milliseconds timeout,
                                         const OnLongWait &onLongWait = {});

/// Tells the ranks that wait at the store, now or later, that this one does not
/// come and why. Takes some seconds at most. Throws std::exception where nobody
/// serves the store.
void declineAtStore(const StoreAddress &store, uint32_t rank,
                    const std::string &reason);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CONTROL_TCP_MEETING_H
