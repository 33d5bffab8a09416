//===- Account.cpp - What the ranks of a host were doing ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/watch/Account.h"

#include "runtime/watch/Processes.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <type_traits>

using namespace chimera::runtime;

static_assert(std::is_trivially_copyable_v<RankState>);

const RankState *Account::find(uint32_t rank) const {
  auto found = std::ranges::lower_bound(ranks, rank, {}, &RankState::rank);
  return found != ranks.end() && found->rank == rank ? &*found : nullptr;
}

// The bytes are: the number of ranks (uint64), the RankState of each rank, the
// headline.
std::vector<std::byte> Account::bytes() const {
  uint64_t count = ranks.size();
  std::vector<std::byte> bytes;
  for (auto part :
       {std::as_bytes(std::span(&count, 1)), std::as_bytes(std::span(ranks)),
        std::as_bytes(std::span(headline))})
    bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}

Account Account::parse(std::span<const std::byte> bytes) {
  Account account;
  uint64_t count = 0;
  if (bytes.size() >= sizeof(count))
    std::memcpy(&count, bytes.data(), sizeof(count));
  if (bytes.size() < sizeof(count) ||
      count > (bytes.size() - sizeof(count)) / sizeof(RankState))
    throw std::invalid_argument("expected an account of " +
                                std::to_string(count) + " ranks, got " +
                                std::to_string(bytes.size()) + " bytes");
  bytes = bytes.subspan(sizeof(count));
  account.ranks.resize(count);
  std::memcpy(account.ranks.data(), bytes.data(), count * sizeof(RankState));
  for (RankState &each : account.ranks)
    each.reason.back() = 0;
  bytes = bytes.subspan(count * sizeof(RankState));
  account.headline.assign(reinterpret_cast<const char *>(bytes.data()),
                          bytes.size());
  std::ranges::sort(account.ranks, {}, &RankState::rank);
  return account;
}

Account Account::merge(std::span<const Account> accounts) {
  Account all;
  for (const Account &account : accounts) {
    if (all.headline.empty())
      all.headline = account.headline;
    all.ranks.insert(all.ranks.end(), account.ranks.begin(),
                     account.ranks.end());
  }
  std::ranges::stable_sort(all.ranks, {}, &RankState::rank);
  const auto repeated = std::ranges::unique(all.ranks, {}, &RankState::rank);
  all.ranks.erase(repeated.begin(), repeated.end());
  return all;
}

Account chimera::runtime::accountOf(const StatusPage &page,
                                    const std::vector<uint32_t> &ranks,
                                    const std::vector<uint32_t> &dead,
                                    const std::string &headline) {
  Account account{headline, {}};
  for (uint32_t rank : ranks) {
    const Status &status = page.of(rank);
    RankState known{};
    known.rank = rank;
    // Read `state` before `since`, and `since` before the clock. The rank
    // writes `since` before `state`. So the state is never newer than `since`,
    // and the difference is not negative.
    known.state = status.state.load(std::memory_order_acquire);
    int64_t begin = status.since.load();
    known.since = steadyNanoseconds() - begin;
    known.failedIn = status.failedIn.load();
    known.step = status.step.load();
    known.instruction = status.instruction.load();
    known.isBehind = status.isBehind.load(std::memory_order_acquire);
    if (known.isBehind) {
      known.issuedStep = known.step;
      known.issuedInstruction = known.instruction;
      known.step = status.deviceStep.load();
      known.instruction = status.deviceInstruction.load();
      known.since = steadyNanoseconds() - status.deviceSince.load();
    }
    known.pid = status.pid.load();
    known.isDead = std::ranges::find(dead, rank) != dead.end();
    known.isStopped = !known.isDead && isStopped(known.pid);
    if (known.state == Status::Failed)
      known.reason = status.reason;
    account.ranks.push_back(known);
  }
  std::ranges::sort(account.ranks, {}, &RankState::rank);
  return account;
}
