//===- PeerExchange.cpp - How ranks find each other -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/control/tcp/PeerExchange.h"

#include "runtime/system/HostId.h"
#include "runtime/system/PidNamespace.h"

#include <map>
#include <random>
#include <sstream>
#include <stdexcept>
#include <unistd.h>

using namespace chimera::runtime;

PeerEntry PeerEntry::own(uint16_t port, const std::string &reachable) {
  PeerEntry entry;
  entry.host = hostId();
  entry.address = {addressesOfHost(reachable), port};
  std::random_device random;
  entry.secret = uint64_t(random()) << 32 | random();
  entry.pid = getpid();
  entry.pidNamespace = chimera::runtime::pidNamespace();
  return entry;
}

std::string PeerEntry::text() const {
  std::ostringstream stream;
  stream << "2 " << host << ' ' << secret << ' ' << pid << ' ' << pidNamespace
         << ' ' << address.port;
  for (const std::string &each : address.hosts)
    stream << ' ' << each;
  stream << '\n';
  return stream.str();
}

PeerEntry PeerEntry::parse(const std::string &text) {
  std::istringstream stream(text);
  PeerEntry entry;
  int version = 0;
  if (!(stream >> version >> entry.host >> entry.secret >> entry.pid >>
        entry.pidNamespace >> entry.address.port) ||
      version != 2)
    throw std::runtime_error("expected an entry of a rank of this version of "
                             "chimera (do all ranks run the same one?), got '" +
                             text.substr(0, text.find('\n')) + "'");
  for (std::string host; stream >> host;)
    entry.address.hosts.push_back(host);
  return entry;
}

PeerInfo::PeerInfo(uint32_t rank, const std::vector<std::string> &entries) {
  peerTable.rank = rank;
  std::map<std::string, uint32_t> leaders;
  const uint64_t here = pidNamespace();
  for (const std::string &text : entries) {
    PeerEntry entry = PeerEntry::parse(text);
    const bool isKnown = here != 0 && entry.pidNamespace == here;
    pids.push_back(isKnown ? entry.pid : 0);
    peerTable.secrets.push_back(entry.secret);
    peerTable.addresses.push_back(std::move(entry.address));
    auto rankHere = static_cast<uint32_t>(hosts.size());
    peerTable.leaders.push_back(
        leaders.emplace(entry.host, rankHere).first->second);
    hosts.push_back(std::move(entry.host));
  }
}

std::vector<uint32_t> PeerInfo::hostRanks() const {
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 0; rank < hosts.size(); ++rank)
    if (hosts[rank] == hosts[peerTable.rank])
      ranks.push_back(rank);
  return ranks;
}

std::vector<PeerInfo::Process> PeerInfo::hostProcesses() const {
  std::vector<Process> processes;
  for (uint32_t rank : hostRanks())
    if (rank != peerTable.rank && pids[rank] != 0)
      processes.push_back({rank, pids[rank]});
  return processes;
}
