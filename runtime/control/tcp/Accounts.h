//===- Accounts.h - One rank writes what all hosts say ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// At the end of a run that fails a process of each host hands in its account to
// one rank, which waits a moment for those of the others, writes them all and
// says so to each. That rank is the first of all hosts, or the first of the
// second host where it is lost.
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
  /// Uses nothing of the mesh, which calls this for as long as it lives, before
  /// `listen` or after `close`.
  Accounts(Mesh &mesh, const Book &book);
  void listen();
  void close();

  bool handIn(ConstBytes account, uint32_t ranks);
  void setWriter(Control::WriteAccounts next);

private:
  /// What another rank hands in.
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
  const std::vector<uint32_t> leaders; ///< by rank, see Book
  /// Those who may write: the lowest ranks of the first two hosts.
  std::vector<uint32_t> writers;
  std::vector<Incoming> incoming; ///< by rank

  std::mutex writing; ///< held during the call: who replaces it waits for it
  Control::WriteAccounts writer;

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::vector<std::byte>> accounts;
  std::vector<uint32_t> from; ///< whose they are
  uint64_t known = 0;         ///< the ranks that they are of
  bool isClosed = false;
  Answer answered = Answer::None;
  std::array<uint64_t, 2> words{}; ///< of those who may write
  std::thread clerk;               ///< from the first account on
};

} // namespace chimera::runtime::tcp

#endif // CHIMERA_RUNTIME_CONTROL_TCP_ACCOUNTS_H
