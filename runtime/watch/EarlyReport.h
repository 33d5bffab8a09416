//===- EarlyReport.h - Reports ranks stopped early --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A report of ranks that are stopped (SIGSTOP) while ranks start, before there
// is a status page. If a rank is stopped, the waits of all other ranks time
// out. The rank that a wait names need not be the stopped one: it may itself be
// waiting. So the first rank of a host that fails checks which ranks are
// stopped. It reports these ranks for the whole host and lets them continue
// (SIGCONT).
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_WATCH_EARLYREPORT_H
#define CHIMERA_RUNTIME_WATCH_EARLYREPORT_H

#include "runtime/control/tcp/PeerExchange.h"

#include <functional>
#include <string>
#include <vector>

namespace chimera::runtime {

/// Call this function in a rank that fails for `reason` before it has a status
/// page.
///
/// If some of `others` are stopped, and no rank of this host has reported this
/// yet, the function calls `tell` with a text that has the stopped ranks and
/// the reason. Then it lets these ranks continue and waits until all of
/// `others` have ended, but at most 5 s. During this time it has the Unix
/// socket with the name `lockName` (JoinedJob::hostLockName), so the other
/// ranks of the host, whose waits time out a little later, see that there is a
/// report.
///
/// Returns whether this rank or another rank has reported the stopped ranks. If
/// the result is true, the caller must not report anything.
bool reportStoppedRanks(const std::string &lockName,
                        const std::vector<PeerInfo::Process> &others,
                        const std::string &reason,
                        const std::function<void(const std::string &)> &tell);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_WATCH_EARLYREPORT_H
