//===- Account.h - What the ranks of a host were doing ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The processes of one host read each other's entries on the status page. For a
// report of several hosts, each host sends an account of its ranks, as bytes.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_WATCH_ACCOUNT_H
#define CHIMERA_RUNTIME_WATCH_ACCOUNT_H

#include "runtime/watch/StatusPage.h"

#include <array>
#include <span>
#include <string>

namespace chimera::runtime {

/// The state of a rank, without anything that only its own host can read.
struct RankState {
  uint32_t rank;
  uint32_t state;    ///< a Status::State
  uint32_t failedIn; ///< the Status::State in which it failed
  uint32_t instruction;
  uint64_t step;
  int64_t since; ///< how long it has been there, in nanoseconds
  /// If `isBehind`, the rank's device still has to run instructions that its
  /// host has enqueued. Then `step`, `instruction` and `since` describe the
  /// device, and these two fields name the last instruction that the host has
  /// enqueued.
  uint64_t issuedStep;
  uint32_t issuedInstruction;
  uint32_t isBehind;
  int32_t pid;
  uint32_t isDead;
  uint32_t isStopped; ///< the process is stopped, by SIGSTOP or a debugger
  std::array<char, sizeof(Status::reason)> reason;
};

struct Account {
  /// The first line of the report if no rank died or failed.
  std::string headline;
  std::vector<RankState> ranks; ///< ascending; only the ranks of this account

  const RankState *find(uint32_t rank) const;

  std::vector<std::byte> bytes() const;
  /// The inverse of `bytes`. Throws std::invalid_argument for other input.
  static Account parse(std::span<const std::byte> bytes);
  /// The union of the accounts, without duplicate ranks. Uses the first
  /// headline.
  static Account merge(std::span<const Account> accounts);
};

/// Reads the entries of `ranks` on the page. `dead` are the ranks that have
/// died.
Account accountOf(const StatusPage &page, const std::vector<uint32_t> &ranks,
                  const std::vector<uint32_t> &dead,
                  const std::string &headline);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_WATCH_ACCOUNT_H
