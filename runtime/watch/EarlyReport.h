//===- EarlyReport.h - Tells of ranks that stop early --------- -*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// While ranks start there is no status page. If one of them is stopped then
// (SIGSTOP), each of the others times out in a wait for somebody, who may wait
// for it in turn. So the first of a host that fails looks who is stopped, tells
// for all of the host, and lets the stopped go on, as a report does later.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_WATCH_EARLYREPORT_H
#define CHIMERA_RUNTIME_WATCH_EARLYREPORT_H

#include "runtime/control/tcp/Meeting.h"

#include <functional>
#include <string>
#include <vector>

namespace chimera::runtime {

/// To be called by a rank that fails for `reason` before it has a status page.
/// If some of `others` are stopped, and no rank of this host has told yet,
/// calls `tell` with the names of the stopped and the reason. It then lets them
/// go on and waits half a second, in which the other ranks of the host notice.
/// The rank that tells claims the name `claim` (JoinedJob::claimName). Returns
/// whether this rank or another one has told: it has nothing more to say then.
bool tellOfStopped(const std::string &claim,
                   const std::vector<Meeting::Process> &others,
                   const std::string &reason,
                   const std::function<void(const std::string &)> &tell);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_WATCH_EARLYREPORT_H
