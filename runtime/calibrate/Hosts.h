//===- Hosts.h - How the ranks are on their hosts ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A chimera.machine knows one kind of node: every node has as many devices, and
// rank r is on node r / devices. Whether the hosts of a run are such nodes, and
// whether the ranks of a host share its cores, or other devices, follows from a
// few numbers of each rank.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CALIBRATE_HOSTS_H
#define CHIMERA_RUNTIME_CALIBRATE_HOSTS_H

#include "runtime/control/Control.h"

#include <span>

namespace chimera::runtime {

/// One rank's host, and what the rank has of it.
struct HostOfRank {
  uint32_t host = 0;    ///< equal at the ranks of one host, and only there
  uint32_t cores = 1;   ///< of the host, for all of its ranks
  uint32_t threads = 1; ///< with which this rank computes
  uint64_t memory = 0;  ///< of the host, for all of its ranks
  /// How many ranks compute on the device where this one does, whose memory it
  /// then is; 0 where that is the host.
  uint32_t ranksOnDevice = 0;
};

/// The hosts of all ranks.
struct Hosts {
  uint32_t count = 1;
  /// The ranks on each host, where all hosts have as many and rank r is on host
  /// r / ranksOnEach; else 0.
  uint32_t ranksOnEach = 0;
  /// Whether some host has several ranks, which compute with more threads than
  /// the host has cores.
  bool shareCores = false;
  /// How many ranks of a host can compute at once as fast as one alone, at
  /// least 1. 0 where hosts differ in cores or threads or have no
  /// `ranksOnEach`, and where no ranks share cores.
  uint32_t ranksWithCores = 0;
  /// Of each rank's equal share of its host's, or its device's, the least.
  uint64_t memory = 0;
  /// The most ranks that compute on one device; 0 where all do on hosts.
  uint32_t ranksOnDevice = 0;

  /// How many times faster than while all ranks compute a rank is alone, where
  /// k ranks that compute each go on by min(1, ranksWithCores / k): 1 where no
  /// ranks share cores, and where `ranksWithCores` is not known.
  double speedup() const;

  /// Whether the machine's nodes are these hosts and a node's links join at
  /// least two ranks.
  bool haveOwnLinks() const { return count > 1 && ranksOnEach > 1; }
};

/// Requires at least one rank.
Hosts hostsOf(std::span<const HostOfRank> ranks);

/// The hosts of all ranks, in the order of the ranks, at every rank. Every rank
/// calls it. Throws what waits throw.
std::vector<HostOfRank> gatherHosts(Control &control, const HostOfRank &own,
                                    std::chrono::milliseconds timeout);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CALIBRATE_HOSTS_H
