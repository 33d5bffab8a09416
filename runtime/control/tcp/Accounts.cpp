//===- Accounts.cpp - One report for all hosts ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/control/tcp/Accounts.h"

#include "runtime/channel/tcp/Streams.h"

#include <algorithm>
#include <stdexcept>

using namespace chimera::runtime;
using namespace chimera::runtime::tcp;
using std::chrono::milliseconds;

namespace {
/// The time to wait for the other accounts. It is short because mpirun kills
/// the ranks one second after its SIGTERM.
constexpr milliseconds kGather(600);
/// The times to wait for the answer, and for a connection to the writing rank.
constexpr milliseconds kPatience(900), kReach(300);
/// The time between two checks whether the writing rank is lost.
constexpr milliseconds kLook(20);
constexpr uint64_t kMostBytes = uint64_t(64) << 20;
} // namespace

Accounts::Accounts(Mesh &mesh, const PeerTable &peerTable)
    : mesh(mesh), leaders(peerTable.leaders),
      incoming(peerTable.addresses.size()) {
  for (uint32_t rank = 0; rank < leaders.size() && writingRanks.size() < 2;
       ++rank)
    if (leaders[rank] == rank)
      writingRanks.push_back(rank);
}

void Accounts::listen() {
  if (writingRanks.size() > 1)
    for (uint32_t rank = 0; rank < mesh.ranks(); ++rank)
      if (rank != mesh.rank())
        listenTo(rank);
}

void Accounts::close() {
  {
    std::lock_guard lock(mutex);
    isClosed = true;
  }
  if (writerThread.joinable())
    writerThread.join();
}

void Accounts::listenTo(uint32_t rank) {
  Incoming &own = incoming[rank];
  auto head = std::as_writable_bytes(std::span(&own.head, 1));
  mesh.receive(rank, Streams::kAccounts, head, [this, rank, &own] {
    if (own.head.bytes > kMostBytes)
      return;
    own.account.resize(own.head.bytes);
    mesh.receive(rank, Streams::kAccounts, own.account, [this, rank, &own] {
      take(rank, std::move(own.account), own.head.ranks);
    });
  });
}

void Accounts::take(uint32_t rank, std::vector<std::byte> account,
                    uint64_t ranks) {
  {
    std::lock_guard lock(mutex);
    if (!isClosed) {
      accounts.push_back(std::move(account));
      from.push_back(rank);
      known += ranks;
      if (!writerThread.joinable())
        writerThread = std::thread([this] { write(); });
      changed.notify_all();
      return;
    }
  }
  answer(rank, Answer::Alone);
}

void Accounts::write() {
  {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, kGather, [this] { return known >= mesh.ranks(); });
    isClosed = true; // no account is added after this
  }
  Answer given = Answer::Alone;
  {
    std::lock_guard lock(writing);
    if (writer) {
      writer(accounts);
      given = Answer::Written;
    }
  }
  // Answer the ranks of this host after all others, and this rank last. After
  // an answer to this host, this process may be ended, so the other hosts must
  // have their answers before.
  std::ranges::stable_partition(from, [this](uint32_t rank) {
    return leaders[rank] != leaders[mesh.rank()];
  });
  std::ranges::stable_partition(
      from, [this](uint32_t rank) { return rank != mesh.rank(); });
  for (uint32_t rank : from)
    answer(rank, given);
}

void Accounts::answer(uint32_t to, Answer given) {
  if (to == mesh.rank()) {
    std::lock_guard lock(mutex);
    answered = given;
    changed.notify_all();
    return;
  }
  auto bytes = std::make_shared<uint64_t>(static_cast<uint64_t>(given));
  try {
    mesh.send(to, Streams::kAnswers, std::as_bytes(std::span(bytes.get(), 1)),
              [bytes] {});
  } catch (const std::runtime_error &) {
    // The rank that gave the account does not wait for an answer any more.
  }
}

/// Sends the account of this host to writingRanks[writer]. Returns false if
/// this rank cannot be reached.
bool Accounts::send(size_t writer, ConstBytes account, uint32_t ranks) {
  uint32_t to = writingRanks[writer];
  if (to == mesh.rank()) {
    take(to, {account.begin(), account.end()}, ranks);
    return true;
  }
  auto head = std::make_shared<Incoming::Head>(account.size(), ranks);
  auto bytes =
      std::make_shared<std::vector<std::byte>>(account.begin(), account.end());
  try {
    mesh.connectToPeer(to, kReach);
    mesh.receive(to, Streams::kAnswers,
                 std::as_writable_bytes(std::span(&words[writer], 1)),
                 [this, writer] {
                   std::lock_guard lock(mutex);
                   answered = static_cast<Answer>(words[writer]);
                   changed.notify_all();
                 });
    mesh.send(to, Streams::kAccounts, std::as_bytes(std::span(head.get(), 1)),
              [head] {});
    mesh.send(to, Streams::kAccounts, *bytes, [bytes] {});
    return true;
  } catch (const std::runtime_error &) {
    return false;
  }
}

bool Accounts::submitAccount(ConstBytes account, uint32_t ranks) {
  if (writingRanks.size() < 2)
    return false;
  // writingRanks[0] is rank 0. All ranks watch rank 0, so this rank knows if
  // rank 0 is lost. If rank 0 ends after this line, the loop continues with the
  // second writing rank.
  size_t writer = mesh.isGone(writingRanks[0]) ? 1 : 0;
  for (; writer < writingRanks.size() && send(writer, account, ranks);
       ++writer) {
    Deadline deadline(kPatience);
    std::unique_lock lock(mutex);
    while (!changed.wait_for(lock, kLook,
                             [this] { return answered != Answer::None; }) &&
           !deadline.passed() && !mesh.isGone(writingRanks[writer]))
      ;
    if (answered != Answer::None || deadline.passed())
      break;
  }
  std::lock_guard lock(mutex);
  return answered == Answer::Written;
}

void Accounts::setWriter(Control::ReportWriter next) {
  std::lock_guard lock(writing);
  writer = std::move(next);
}
