//===- Accounts.h - One report for all hosts --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// At the end of a failed run, one process of each host gives an account (the
// report of its host) to the writing rank. The writing rank waits a moment for
// the accounts of the other hosts, writes all accounts as one report, and
// answers each host. The writing rank is the lowest rank of the first host. If
// this rank is lost, the lowest rank of the second host writes.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CONTROL_TCP_ACCOUNTS_H
#define CHIMERA_RUNTIME_CONTROL_TCP_ACCOUNTS_H

#include "runtime/channel/tcp/Mesh.h"
#include "runtime/control/Control.h"

#include <array>

namespace chimera::runtime::tcp {

class Accounts {
public:
  /// Stores `mesh` but does not use it yet: the mesh is constructed after this
  /// object and destroyed before it. Use this object only between `listen` and
  /// `close`.
  Accounts(Mesh &mesh, const PeerTable &peerTable);
  void listen();
  void close();

  bool submitAccount(ConstBytes account, uint32_t ranks);
  void setWriter(Control::ReportWriter next);

private:
  /// An account that arrives from another rank.
  struct Incoming {
    struct Head {
      uint64_t bytes, ranks;
    } head;
    std::vector<std::byte> account;
  };
  enum class Answer : uint64_t { None, Written, Alone };

  void listenTo(uint32_t rank);
  void take(uint32_t from, std::vector<std::byte> account, uint64_t ranks);
  bool send(size_t writer, ConstBytes account, uint32_t ranks);
  void answer(uint32_t to, Answer word);
  void write();

  Mesh &mesh;
  const std::vector<uint32_t> leaders; ///< by rank, see PeerTable::leaders
  /// The ranks that may write: the lowest ranks of the first two hosts.
  std::vector<uint32_t> writingRanks;
  std::vector<Incoming> incoming; ///< by rank

  std::mutex writing; ///< held while `writer` runs, so setWriter waits for it
  Control::ReportWriter writer;

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::vector<std::byte>> accounts;
  std::vector<uint32_t> from; ///< the sender of each account
  uint64_t known = 0;         ///< number of ranks that the accounts describe
  bool isClosed = false;
  Answer answered = Answer::None;
  std::array<uint64_t, 2> words{}; ///< buffers for answers of `writingRanks`
  std::thread writerThread;        ///< writes; started by the first account
};

} // namespace chimera::runtime::tcp

#endif // CHIMERA_RUNTIME_CONTROL_TCP_ACCOUNTS_H
