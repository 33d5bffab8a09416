//===- LocalPeerTables.h - Peer tables for ranks in one process -*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_CHANNEL_LOCALPEERTABLES_H
#define CHIMERA_TEST_RUNTIME_CHANNEL_LOCALPEERTABLES_H

#include "runtime/channel/tcp/Mesh.h"

namespace chimera::runtime::test {

/// One: all ranks believe that they are on one host, and use Unix sockets.
/// Several: each rank believes that it is alone on its host, and uses TCP.
enum class Hosts { One, Several };
inline void PrintTo(Hosts hosts, std::ostream *stream) {
  *stream << (hosts == Hosts::One ? "OneHost" : "SeveralHosts");
}

/// The listeners and peer tables for `ranks` threads of one process. With them,
/// each thread makes a tcp::Mesh, which connects it with the other threads.
struct LocalPeerTables {
  explicit LocalPeerTables(uint32_t ranks, Hosts hosts = Hosts::One)
      : listeners(ranks) {
    for (uint32_t rank = 0; hosts == Hosts::Several && rank < ranks; ++rank)
      leaders.push_back(rank);
    for (const Listener &listener : listeners)
      addresses.push_back({{"127.0.0.1"}, listener.port});
  }
  tcp::PeerTable of(uint32_t rank) const {
    return {rank, addresses, std::vector<uint64_t>(addresses.size(), 42),
            leaders};
  }

  std::vector<Listener> listeners; ///< by rank; move them into the meshes
  std::vector<tcp::Address> addresses;
  std::vector<uint32_t> leaders; ///< as in tcp::PeerTable
};

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CHANNEL_LOCALPEERTABLES_H
