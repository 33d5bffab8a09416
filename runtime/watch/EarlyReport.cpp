//===- EarlyReport.cpp - Reports ranks stopped early ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/watch/EarlyReport.h"

#include "runtime/system/Socket.h"
#include "runtime/watch/Processes.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

using namespace chimera::runtime;

bool chimera::runtime::reportStoppedRanks(
    const std::string &lockName, const std::vector<PeerInfo::Process> &others,
    const std::string &reason,
    const std::function<void(const std::string &)> &tell) {
  constexpr std::chrono::seconds kNoticing(5);
  constexpr std::chrono::milliseconds kPoll(20);
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
  // If a rank is no longer stopped because another rank has just reported it
  // and let it continue, the other rank has the lock.
  if (stopped.empty())
    return isSocketNameLocked(lockName);
  const Socket mine = tryLockSocketName(lockName);
  if (!mine && isSocketNameLocked(lockName))
    return true; // another rank was faster
  tell(names + ": " + reason);
  for (const PeerInfo::Process &each : stopped)
    kill(each.pid, SIGCONT);
  const auto end = std::chrono::steady_clock::now() + kNoticing;
  while (std::ranges::any_of(
             others, [](const auto &each) { return isRunning(each.pid); }) &&
         std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(kPoll);
  return true;
}
