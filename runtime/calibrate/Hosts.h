//===- Hosts.h - How ranks are placed on hosts ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A chimera.machine has one kind of node: every node has the same number of
// devices, and rank r is on node r / devices. The functions here find out from
// a few numbers of each rank whether the hosts of a run are such nodes, and
// whether the ranks of a host share cores or devices.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CALIBRATE_HOSTS_H
#define CHIMERA_RUNTIME_CALIBRATE_HOSTS_H

#include "runtime/control/Control.h"

#include <span>

namespace chimera::runtime {

/// Describes a rank's host, and the part of it that the rank uses.
struct HostOfRank {
  uint32_t host = 0;    ///< identifies the host
  uint32_t cores = 1;   ///< of the host, for all of its ranks
  uint32_t threads = 1; ///< on which this rank computes
  uint64_t memory = 0;  ///< of the host, for all of its ranks
  /// The number of ranks that compute on this rank's device. Then `memory` is
  /// the memory of that device. 0 if this rank computes on the host.
  uint32_t ranksOnDevice = 0;
};

/// Describes the hosts of all ranks.
struct Hosts {
  uint32_t count = 1;
  /// The number of ranks on each host, if it is the same on all hosts and rank
  /// r is on host r / ranksOnEach. Otherwise 0.
  uint32_t ranksOnEach = 0;
  /// Whether on some host several ranks together compute with more threads than
  /// the host has cores.
  bool shareCores = false;
  /// The number of ranks of a host that can compute at the same time, each at
  /// the speed of a rank that computes alone. At least 1. But 0 if no ranks
  /// share cores, if hosts differ in cores or threads, or if `ranksOnEach` is
  /// 0.
  uint32_t concurrentRanks = 0;
  /// The memory of a rank in bytes: the memory of its host or device, divided
  /// by the number of ranks there. The smallest value of all ranks.
  uint64_t memory = 0;
  /// The largest number of ranks that compute on one device. 0 if all ranks
  /// compute on hosts.
  uint32_t ranksOnDevice = 0;

  /// The speed of a rank that computes alone, relative to its speed while all
  /// ranks compute. While k ranks of a host compute, each runs at min(1,
  /// concurrentRanks / k) of its full speed. So the result is ranksOnEach /
  /// concurrentRanks. It is 1 if `concurrentRanks` is 0.
  double speedup() const;

  /// Whether the hosts are nodes of a machine with separate links inside a
  /// node: there are several hosts, each with at least two ranks.
  bool haveNodeLinks() const { return count > 1 && ranksOnEach > 1; }
};

/// Describes the hosts of `ranks`, which are in rank order. Requires at least
/// one rank.
Hosts hostsOf(std::span<const HostOfRank> ranks);

/// Returns the HostOfRank of all ranks, in rank order, at every rank. This is a
/// collective call. Throws the exceptions of waits.
std::vector<HostOfRank> gatherHosts(Control &control, const HostOfRank &own,
                                    std::chrono::milliseconds timeout);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CALIBRATE_HOSTS_H
