//===- EarlyReport.cpp - Reports ranks stopped early ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/watch/EarlyReport.h"

#include "runtime/system/Socket.h"
#include "runtime/watch/Processes.h"

#include <csignal>
#include <thread>

using namespace chimera::runtime;

bool chimera::runtime::reportStoppedRanks(
    const std::string &lockName, const std::vector<PeerInfo::Process> &others,
    const std::string &reason,
    const std::function<void(const std::string &)> &tell) {
  constexpr std::chrono::milliseconds kNoticing(500);
  if (lockName.empty())
    return false;
  if (isSocketNameLocked(lockName))
    return true;
  std::vector<PeerInfo::Process> stopped;
  std::string names;
  for (const PeerInfo::Process &each : others)
    if (isStopped(each.pid)) {
      stopped.push_back(each);
      names += (names.empty() ? "" : ", ") + std::string("rank ") +
               std::to_string(each.rank) + " is stopped (process " +
               std::to_string(each.pid) + ")";
    }
  if (stopped.empty())
    return false;
  const Socket mine = tryLockSocketName(lockName);
  if (!mine && isSocketNameLocked(lockName))
    return true; // another rank was faster
  tell(names + ": " + reason);
  for (const PeerInfo::Process &each : stopped)
    kill(each.pid, SIGCONT);
  std::this_thread::sleep_for(kNoticing);
  return true;
}
