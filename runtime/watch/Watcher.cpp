//===- Watcher.cpp - Notices dead and failed ranks ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/watch/Watcher.h"

#include "runtime/system/Deadline.h"
#include "runtime/watch/EndProcess.h"
#include "runtime/watch/Processes.h"
#include "runtime/watch/Report.h"
#include "runtime/watch/Signals.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <iterator>
#include <unistd.h>

using namespace chimera;
using namespace chimera::runtime;

namespace {
constexpr std::chrono::milliseconds kPeriod(50);
/// The number of periods after which a watcher checks again if its neighbour is
/// stopped.
constexpr unsigned kStoppedEvery = 5;

uint32_t nextOf(const std::vector<uint32_t> &ranks, uint32_t self) {
  auto place = std::ranges::upper_bound(ranks, self);
  return place == ranks.end() ? ranks.front() : *place;
}
} // namespace

Watcher::Watcher(const program::ProgramT &program, StatusPage &page,
                 Control &control, const std::vector<uint32_t> &hostRanks,
                 std::chrono::milliseconds timeout,
                 const std::function<void(const std::string &)> &onAbort)
    : program(program), page(page), control(control), self(control.rank()),
      ranks(hostRanks), next(nextOf(hostRanks, self)), timeout(timeout),
      thread([this] {
        runOrEnd("watching the other ranks", [this] { watch(); });
      }) {
  control.setReportWriter(
      [this](const auto &accounts) { writeForAll(accounts); });
  control.onAbort([this, onAbort](const std::string &reason) {
    onAbort(reason);
    noteAbort(reason);
  });
}

Watcher::~Watcher() {
  control.onAbort({});
  control.setReportWriter({});
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  condition.notify_all();
  thread.join();
}

bool Watcher::isDead(uint32_t rank) const {
  const Status &status = page.of(rank);
  pid_t pid = status.pid.load();
  if (rank == self || pid == 0)
    return false;
  bool isGone = kill(pid, 0) != 0 && errno == ESRCH;
  // Read the rank's state only after its process was found gone. A process sets
  // Done before it ends, so a process that is gone without Done has died.
  return (isGone || (rank == next && isZombie(pid))) &&
         status.state.load() != Status::Done;
}

std::vector<uint32_t> Watcher::findDead() const {
  std::vector<uint32_t> dead;
  std::ranges::copy_if(ranks, std::back_inserter(dead),
                       [this](uint32_t rank) { return isDead(rank); });
  return dead;
}

bool Watcher::anyFailed() const {
  return std::any_of(ranks.begin(), ranks.end(), [&](uint32_t rank) {
    return page.of(rank).state.load() == Status::Failed;
  });
}

void Watcher::watch() {
  // The time for which the next rank may be stopped. It starts again whenever
  // that rank is seen running.
  Deadline patience(watcherTimeout(timeout));
  constexpr unsigned kTurnsToEnd = 8;
  unsigned turnsSinceAbort = 0;
  std::unique_lock lock(mutex);
  for (unsigned turn = 0;
       !condition.wait_for(lock, kPeriod, [this] { return stopping; });
       ++turn) {
    if (next != self && turn % kStoppedEvery == 0) {
      if (!isStopped(page.of(next).pid.load()))
        patience = Deadline(watcherTimeout(timeout));
      else if (patience.passed())
        page.of(self).fail(timeoutMessage(
            timeout, "the stopped process of rank " + std::to_string(next)));
    }
    std::vector<uint32_t> dead = findDead();
    bool hasCause = !dead.empty() || anyFailed();
    // After an abort, wait a while for this process to end by itself. Then end
    // it, because its thread may compute for a long time.
    if (!hasCause && !(abortReason && ++turnsSinceAbort > kTurnsToEnd))
      continue;
    std::string headline = hasCause ? "" : *abortReason;
    lock.unlock(); // `reportOrWait` may call `noteAbort`
    endProcess(reportOrWait(1, dead, headline));
  }
}

/// Notes that the run was aborted. If the process does not end by itself soon,
/// `watch` ends it as `endAfterAbort` does.
void Watcher::noteAbort(const std::string &reason) {
  std::lock_guard lock(mutex);
  if (!abortReason)
    abortReason = reason;
}

void Watcher::fail(const std::string &reason) {
  page.of(self).fail(reason);
  control.abort("rank " + std::to_string(self) + " failed: " + reason);
  endProcess(reportOrWait(1, findDead(), ""));
}

void Watcher::endAfterAbort(const std::string &reason) {
  std::this_thread::sleep_for(4 * kPeriod);
  endProcess(reportOrWait(1, findDead(), reason));
}

void Watcher::endForSignal(int signal) {
  // A launcher sends this signal after a rank has died, but also when a user
  // stops the run. So look for dead ranks first.
  std::vector<uint32_t> dead = findDead();
  int exitStatus = dead.empty() && !anyFailed() ? 128 + signal : 1;
  endProcess(reportOrWait(exitStatus, dead,
                          kEndedBy + signalName(signal) + ", which rank " +
                              std::to_string(self) + " received"));
}

bool Watcher::submitAccount(const std::vector<uint32_t> &dead,
                            const std::string &headline) noexcept {
  try {
    return control.submitAccount(accountOf(page, ranks, dead, headline).bytes(),
                                 static_cast<uint32_t>(ranks.size()));
  } catch (const std::exception &) {
    return false; // no memory, or no connection
  }
}

void Watcher::writeForAll(
    const std::vector<std::vector<std::byte>> &handedIn) noexcept {
  runOrEnd("writing a report for all hosts", [&] {
    std::vector<Account> accounts;
    for (const std::vector<std::byte> &bytes : handedIn)
      accounts.push_back(Account::parse(bytes));
    writeReport(report(program, Account::merge(accounts)));
  });
}

/// Lets the stopped processes of this host continue, so that they notice the
/// end of the run and end. Some launchers do not do that.
void Watcher::continueStopped() const {
  for (uint32_t rank : ranks)
    if (pid_t pid = page.of(rank).pid.load(); rank != self && isStopped(pid))
      kill(pid, SIGCONT);
}

/// Makes the report, or waits until another process has made it. Returns the
/// exit status.
int Watcher::reportOrWait(int exitStatus, const std::vector<uint32_t> &dead,
                          const std::string &headline) {
  if (page.claimReport(exitStatus)) {
    // End the run on the other hosts too. They cannot read the status page of
    // this host, which is in its shared memory. Their reports become parts of
    // the final report.
    control.abort(!dead.empty()
                      ? "rank " + std::to_string(dead.front()) + " died"
                  : headline.empty() ? "a rank failed"
                                     : headline);
    if (!submitAccount(dead, headline))
      writeReport(program, page, ranks, dead, headline);
    // Before setReported: after it, another thread may end this process.
    continueStopped();
    page.setReported();
    return exitStatus;
  }
  // Another process writes the report. mpirun ends all processes after the
  // first one has ended, so wait until the report is written.
  for (int i = 0; i < 300 && !page.reported(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  if (!page.reported())
    continueStopped(); // the other process may have ended
  return page.exitStatus();
}
