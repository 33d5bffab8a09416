//===- Watcher.cpp - Notices dead and failed ranks ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Watcher.h"

#include "runtime/core/Report.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <unistd.h>

using namespace chimera;
using namespace chimera::runtime;

namespace {
constexpr std::chrono::milliseconds kPeriod(50);
volatile std::sig_atomic_t toldToStop = 0;

void writeAll(const std::string &text) {
  for (size_t at = 0; at < text.size();) {
    ssize_t written = write(STDERR_FILENO, text.data() + at, text.size() - at);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return;
    at += static_cast<size_t>(written);
  }
}
} // namespace

Watcher::Watcher(const program::ProgramT &program, StatusPage &page,
                 uint32_t self, const std::vector<uint32_t> &hostRanks)
    : program(program), page(page), self(self), ranks(hostRanks) {
  struct sigaction action = {};
  action.sa_handler = [](int) { toldToStop = 1; };
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
  thread = std::thread([this] { watch(); });
}

Watcher::~Watcher() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  condition.notify_all();
  thread.join();
}

std::vector<uint32_t> Watcher::findDead() const {
  std::vector<uint32_t> dead;
  for (uint32_t rank : ranks) {
    const Status &status = page.of(rank);
    pid_t pid = status.pid.load();
    // The state is read after the process was found gone: it sets Done first.
    if (rank != self && pid && kill(pid, 0) != 0 && errno == ESRCH &&
        status.state.load() != Status::Done)
      dead.push_back(rank);
  }
  return dead;
}

void Watcher::watch() {
  std::unique_lock lock(mutex);
  while (!condition.wait_for(lock, kPeriod, [this] { return stopping; })) {
    std::vector<uint32_t> dead = findDead();
    bool failed = false;
    for (uint32_t rank : ranks)
      failed |= page.of(rank).state.load() == Status::Failed;
    if (!dead.empty() || failed) {
      tell(dead, "");
      _exit(1);
    }
    if (toldToStop) {
      tell({}, "rank " + std::to_string(self) + " was stopped by SIGTERM");
      _exit(128 + SIGTERM);
    }
  }
}

void Watcher::fail(const std::string &reason,
                   const std::function<void()> &afterReport) {
  {
    // Or this process's own watcher could report and leave before afterReport.
    std::lock_guard lock(mutex);
    stopping = true;
  }
  page.of(self).fail(reason);
  tell(findDead(), "");
  afterReport();
  _exit(1);
}

void Watcher::leave(const std::string &reason) {
  std::this_thread::sleep_for(4 * kPeriod);
  tell(findDead(), reason);
  _exit(1);
}

/// Reports, or waits until another process has.
void Watcher::tell(const std::vector<uint32_t> &dead,
                   const std::string &headline) {
  if (page.claimReport()) {
    writeAll("\nchimera-run: " + report(program, page, ranks, dead, headline));
    page.setReported();
    return;
  }
  // Whoever leaves first makes mpirun end the others: let the report come
  // through.
  for (int i = 0; i < 50 && !page.reported(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}
