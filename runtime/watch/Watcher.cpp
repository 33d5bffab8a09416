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
/// A watcher checks only in every fifth period whether the next rank is
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
  // Read the state of the rank after this check of its process. A rank that
  // ends normally sets its state to Done first. So if the process is gone and
  // the state is not Done, the rank has died.
  return (isGone || (rank == next && isZombie(pid))) &&
         status.state.load() != Status::Done;
}

std::vector<uint32_t> Watcher::findDead() const {
  std::vector<uint32_t> dead;
  std::ranges::copy_if(ranks, std::back_inserter(dead),
                       [this](uint32_t rank) { return isDead(rank); });
  return dead;
}

std::string Watcher::firstFailure() const {
  for (uint32_t rank : ranks)
    if (const Status &status = page.of(rank);
        status.state.load() == Status::Failed)
      return "rank " + std::to_string(rank) +
             " failed: " + status.reason.data();
  return "a rank failed";
}

bool Watcher::anyFailed() const {
  return std::any_of(ranks.begin(), ranks.end(), [&](uint32_t rank) {
    return page.of(rank).state.load() == Status::Failed;
  });
}

void Watcher::watch() {
  // The time for which the next rank may be stopped. It begins again each time
  // that the rank is not stopped.
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
    // After an abort, wait for kTurnsToEnd periods: this process may end by
    // itself. Then end the process, because its main thread may compute for a
    // long time.
    if (!hasCause && !(abortReason && ++turnsSinceAbort > kTurnsToEnd))
      continue;
    std::string headline = hasCause ? "" : *abortReason;
    lock.unlock(); // `reportOrWait` may call `noteAbort`, which locks the mutex
    endProcess(reportOrWait(1, dead, headline));
  }
}

/// Stores the reason of an abort. If the process does not end by itself soon,
/// `watch` makes a report if there is none, and ends the process.
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

void Watcher::endForSignal(int signal, const std::string &unsaved) {
  // A launcher sends the same signal after a rank has died and when a user
  // stops the run. So look for dead ranks first.
  std::vector<uint32_t> dead = findDead();
  int exitStatus = dead.empty() && !anyFailed() ? 128 + signal : 1;
  endProcess(reportOrWait(exitStatus, dead,
                          kEndedBy + signalName(signal) + ", which rank " +
                              std::to_string(self) + " received" + unsaved));
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
/// end of the run and end, too. Some launchers do not let them continue.
void Watcher::continueStopped() const {
  for (uint32_t rank : ranks)
    if (pid_t pid = page.of(rank).pid.load(); rank != self && isStopped(pid))
      kill(pid, SIGCONT);
}

/// Makes the report, or waits until another process of this host has made it.
/// Returns the exit status for this process.
int Watcher::reportOrWait(int exitStatus, const std::vector<uint32_t> &dead,
                          const std::string &headline) {
  if (page.claimReport(exitStatus)) {
    // Also abort the run on the other hosts. Each host then sends an account of
    // its ranks, because other hosts cannot read its status page. The report is
    // made from all accounts.
    control.abort(!dead.empty()
                      ? "rank " + std::to_string(dead.front()) + " died"
                  : headline.empty() ? firstFailure()
                                     : headline);
    if (!submitAccount(dead, headline))
      writeReport(program, page, ranks, dead, headline);
    // Do this before setReported: after setReported, the watching thread may
    // end this process.
    continueStopped();
    page.setReported();
    return exitStatus;
  }
  // Another process writes the report. Wait until it is written: when one
  // process has ended, mpirun ends all others, also the one that writes the
  // report.
  for (int i = 0; i < 300 && !page.reported(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  if (!page.reported())
    continueStopped(); // the process that claimed the report may have died
  return page.exitStatus();
}
