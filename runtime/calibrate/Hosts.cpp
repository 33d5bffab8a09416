//===- Hosts.cpp - How ranks are placed on hosts --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/Hosts.h"

#include "runtime/control/Messages.h"

#include <algorithm>
#include <map>

using namespace chimera::runtime;

double Hosts::speedup() const {
  return concurrentRanks == 0 ? 1
                              : static_cast<double>(ranksOnEach) /
                                    static_cast<double>(concurrentRanks);
}

Hosts chimera::runtime::hostsOf(std::span<const HostOfRank> ranks) {
  struct Host {
    uint32_t ranks = 0;
    uint64_t threads = 0; ///< of its ranks that compute on the host
  };
  std::map<uint32_t, Host> all;
  for (const HostOfRank &rank : ranks) {
    Host &host = all[rank.host];
    ++host.ranks;
    host.threads += rank.ranksOnDevice > 0 ? 0 : rank.threads;
  }
  const HostOfRank &first = ranks.front();
  const uint32_t onEach = all[first.host].ranks;
  Hosts hosts{.count = static_cast<uint32_t>(all.size()),
              .ranksOnEach = onEach,
              .memory = UINT64_MAX};
  bool areAlike = true; // all ranks have equal numbers of cores and threads
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const HostOfRank &of = ranks[rank];
    const Host &host = all[of.host];
    hosts.ranksOnDevice = std::max(hosts.ranksOnDevice, of.ranksOnDevice);
    hosts.memory = std::min(
        hosts.memory,
        of.memory / (of.ranksOnDevice > 0 ? of.ranksOnDevice : host.ranks));
    hosts.shareCores |= host.ranks > 1 && host.threads > of.cores;
    areAlike &= of.cores == first.cores && of.threads == first.threads;
    const HostOfRank &lowest = ranks[rank / onEach * onEach];
    if (host.ranks != onEach || lowest.host != of.host)
      hosts.ranksOnEach = 0;
  }
  if (hosts.shareCores && areAlike && hosts.ranksOnEach > 0)
    hosts.concurrentRanks = std::max(1u, first.cores / first.threads);
  return hosts;
}

std::vector<HostOfRank>
chimera::runtime::gatherHosts(Control &control, const HostOfRank &own,
                              std::chrono::milliseconds timeout) {
  std::vector<HostOfRank> all = gatherValues(control, 0, own, timeout);
  if (control.rank() != 0) {
    all.resize(control.ranks());
    receiveLarge(control, 0, std::as_writable_bytes(std::span(all)), timeout);
    return all;
  }
  for (uint32_t rank = 1; rank < control.ranks(); ++rank)
    sendLarge(control, rank, std::as_bytes(std::span(all)), timeout);
  return all;
}
