//===- Account.h - What ranks were doing at one moment ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The processes of a host see each other's entries on a page of their own. For
// a report of all hosts each host gives an account of its ranks, as bytes.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_WATCH_ACCOUNT_H
#define CHIMERA_RUNTIME_WATCH_ACCOUNT_H

#include "runtime/watch/StatusPage.h"

#include <array>
#include <span>
#include <string>

namespace chimera::runtime {

/// What a rank was doing, without anything that only its own host can read.
struct RankState {
  uint32_t rank;
  uint32_t state;    ///< a Status::State
  uint32_t failedIn; ///< the same
  uint32_t instruction;
  uint64_t step;
  int64_t since; ///< nanoseconds ago
  /// Where the rank's device is behind the rank, the three above are the
  /// device's, and these say up to where the rank has put instructions on it.
  uint64_t issuedStep;
  uint32_t issuedInstruction;
  uint32_t isBehind;
  int32_t pid;
  uint32_t isDead;
  uint32_t isStopped; ///< its process, by SIGSTOP or a debugger
  std::array<char, sizeof(Status::reason)> reason;
};

struct Account {
  /// Opens the report where no rank died or failed.
  std::string headline;
  std::vector<RankState> ranks; ///< ascending, those that are known

  const RankState *find(uint32_t rank) const;

  std::vector<std::byte> bytes() const;
  /// Throws std::invalid_argument for what `bytes` does not write.
  static Account parse(std::span<const std::byte> bytes);
  /// Of all ranks that one of them knows. The first headline counts.
  static Account merge(std::span<const Account> accounts);
};

/// Reads `ranks` on the page; those of `dead` among them have died.
Account accountOf(const StatusPage &page, const std::vector<uint32_t> &ranks,
                  const std::vector<uint32_t> &dead,
                  const std::string &headline);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_WATCH_ACCOUNT_H
