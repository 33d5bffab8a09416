//===- Account.h - What the ranks of a host were doing ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An account: the states of the ranks of one host. Processes of one host can
// read each other's entries on the status page, but other hosts cannot. So for
// a report of several hosts, each host sends its account, as bytes.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_WATCH_ACCOUNT_H
#define CHIMERA_RUNTIME_WATCH_ACCOUNT_H

#include "runtime/watch/StatusPage.h"

#include <array>
#include <span>
#include <string>

namespace chimera::runtime {

/// A copy of a rank's entry in the status page (Status), with the state of its
/// process.
struct RankState {
  uint32_t rank;
  uint32_t state;    ///< a Status::State
  uint32_t failedIn; ///< the Status::State before the failure
  uint32_t instruction;
  uint64_t step;
  int64_t since; ///< nanoseconds since it entered the state or instruction
  /// Used only if `isBehind` is not 0: the last instruction that the rank's
  /// host has enqueued, and its step. In this case, the device has not yet run
  /// all enqueued instructions, and `step`, `instruction` and `since` describe
  /// the device.
  uint64_t issuedStep;
  uint32_t issuedInstruction;
  uint32_t isBehind;
  int32_t pid;
  uint32_t isDead;
  uint32_t isStopped; ///< its process is stopped, by SIGSTOP or a debugger
  std::array<char, sizeof(Status::reason)> reason;
};

struct Account {
  /// The first line of the report, if no rank died or failed.
  std::string headline;
  std::vector<RankState> ranks; ///< the ranks of this account, ascending

  const RankState *find(uint32_t rank) const;

  std::vector<std::byte> bytes() const;
  /// Converts the result of `bytes` to an account. Throws std::invalid_argument
  /// if the input is malformed.
  static Account parse(std::span<const std::byte> bytes);
  /// One account with the ranks of all accounts, without duplicates. Its
  /// headline is the first headline that is not empty.
  static Account merge(std::span<const Account> accounts);
};

/// Makes an account of `ranks` from their entries on the page. `dead` are the
/// ranks that have died.
Account accountOf(const StatusPage &page, const std::vector<uint32_t> &ranks,
                  const std::vector<uint32_t> &dead,
                  const std::string &headline);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_WATCH_ACCOUNT_H
