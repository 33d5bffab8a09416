//===- LocalBooks.h - Ranks of one process that meet over TCP ---*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_CHANNEL_LOCALBOOKS_H
#define CHIMERA_TEST_RUNTIME_CHANNEL_LOCALBOOKS_H

#include "runtime/channel/tcp/Mesh.h"

namespace chimera::runtime::test {

/// What each of `ranks` threads needs for a mesh.
struct LocalBooks {
  explicit LocalBooks(uint32_t ranks) : listeners(ranks) {
    for (const Listener &listener : listeners)
      addresses.push_back({{"127.0.0.1"}, listener.port});
  }
  tcp::Book of(uint32_t rank) const {
    return {rank, addresses, std::vector<uint64_t>(addresses.size(), 42)};
  }

  std::vector<Listener> listeners; ///< by rank, to be moved
  std::vector<tcp::Address> addresses;
};

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CHANNEL_LOCALBOOKS_H
