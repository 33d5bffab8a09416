//===- EarlyReport.h - Reports ranks stopped early --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// While ranks start there is no status page. If a rank is stopped (SIGSTOP)
// then, all others time out in waits, perhaps for ranks that wait themselves.
// So the first rank of a host that fails checks which ranks are stopped. It
// reports them for the whole host and lets them continue (SIGCONT), as a later
// report does.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_WATCH_EARLYREPORT_H
#define CHIMERA_RUNTIME_WATCH_EARLYREPORT_H

#include "runtime/control/tcp/PeerExchange.h"

#include <functional>
#include <string>
#include <vector>

namespace chimera::runtime {

/// Call this in a rank that fails for `reason` before it has a status page.
///
/// If some of `others` are stopped, and no rank of this host has reported that
/// yet, calls `tell` with the stopped ranks and the reason. Then it lets these
/// ranks continue and waits half a second. During that time it holds the name
/// `claim` (JoinedJob::claimName), so that the other ranks of the host notice
/// that it has reported.
///
/// Returns whether this rank or another one has reported. If so, the caller
/// must not report anything.
bool reportStoppedRanks(const std::string &claim,
                        const std::vector<PeerInfo::Process> &others,
                        const std::string &reason,
                        const std::function<void(const std::string &)> &tell);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_WATCH_EARLYREPORT_H
