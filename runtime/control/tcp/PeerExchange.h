//===- PeerExchange.h - How ranks find each other ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each rank publishes an entry: its host and the address where it listens. The
// entries are exchanged through a store that all ranks can reach, or through
// MPI.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CONTROL_TCP_PEEREXCHANGE_H
#define CHIMERA_RUNTIME_CONTROL_TCP_PEEREXCHANGE_H

#include "runtime/channel/tcp/Mesh.h"

#include <functional>

namespace chimera::runtime {

/// The entry that a rank sends to the other ranks. Its text form is one line.
struct PeerEntry {
  std::string host; ///< equal for the ranks of one host or one container
  tcp::Address address;
  uint64_t secret = 0; ///< identifies the process, see tcp::PeerTable
  int32_t pid = 0;     ///< process ID, valid in `pidNamespace`
  uint64_t pidNamespace = 0;

  /// The entry of this process, which listens on `port`. `reachable` is a host
  /// that all ranks can reach, or empty.
  static PeerEntry own(uint16_t port, const std::string &reachable);

  std::string text() const;
  /// The inverse of `text`. Throws std::runtime_error for any other text.
  static PeerEntry parse(const std::string &text);
};

/// The entries of all ranks, as a rank has them after the exchange.
struct PeerInfo {
  PeerInfo(uint32_t rank, const std::vector<std::string> &entries);

  /// The ranks on the host of this rank, ascending, including this rank.
  std::vector<uint32_t> hostRanks() const;

  /// The other ranks of this host whose PIDs are valid in this PID namespace.
  struct Process {
    uint32_t rank;
    int32_t pid;
  };
  std::vector<Process> hostProcesses() const;

  tcp::PeerTable peerTable;
  std::vector<std::string> hosts; ///< by rank
  std::vector<int32_t> pids; ///< by rank, 0 if not valid in this PID namespace
};

/// The address of LibTorch's TCPStore, where ranks publish their entries.
struct StoreAddress {
  std::string host;
  uint16_t port = 0;
  bool isServed = false; ///< whether the launcher, not rank 0, serves the store
  std::string prefix;    ///< of the keys, for a store that serves several runs
};

/// Called once if a wait takes longer than some seconds. `what` says for what
/// the rank waits.
using LongWaitHandler = std::function<void(const std::string &what)>;

/// Publishes `own` in the store and returns the entries of all ranks, in rank
/// order. Rank 0 serves the store until its process ends, unless the launcher
/// serves it. The launcher's store outlives the ranks, and the launcher may
/// start all ranks again after a failure: each start of rank 0 begins a new
/// attempt, which the other ranks join. `own` must differ from the entries of
/// other processes. Throws std::runtime_error if
/// - some ranks do not publish their entries before `timeout` passes (rank 0
///   names them),
/// - a rank has called reportFailureAtStore, or
/// - another process has already published an entry of this rank.
std::vector<std::string>
exchangeAtStore(const StoreAddress &store, uint32_t rank, uint32_t ranks,
                const std::string &own, std::chrono::milliseconds timeout,
                const LongWaitHandler &onLongWait = {});

/// Makes the ranks that wait at the store, now or later, fail. Their error says
/// that this rank failed, with `reason`. Returns after a few seconds. Rank 0
/// serves the store, so it returns after all ranks that wait have read the
/// reason, but after 30 s at most. Throws std::exception if nobody serves the
/// store.
void reportFailureAtStore(const StoreAddress &store, uint32_t rank,
                          const std::string &reason,
                          const LongWaitHandler &onLongWait = {});

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CONTROL_TCP_PEEREXCHANGE_H
