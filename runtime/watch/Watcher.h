//===- Watcher.h - Notices dead and failed ranks ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where each rank is a process, nothing tells the others that one died: mpirun
// ends them a second later without a word. This thread looks every 50 ms at the
// processes of its host and at their entries on the status page. When a process
// is dead or has failed, the first watcher that sees it sees to a report, and
// every process of the host ends at once (EndProcess.h): there is nothing to
// save, and MPI's own ways to end take seconds. Over several hosts one of them
// writes for all that can reach it (Control::handIn).
//
// A stopped process (SIGSTOP) cannot report itself, and not every wait for it
// times out. A dead process seems alive until its parent collects its status.
// So each rank of the host also watches one other rank for these two.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_WATCH_WATCHER_H
#define CHIMERA_RUNTIME_WATCH_WATCHER_H

#include "runtime/control/Control.h"
#include "runtime/program/Program.h"
#include "runtime/watch/StatusPage.h"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace chimera::runtime {

class Watcher {
public:
  /// Starts watching `hostRanks`, and hears by `control` of what happens
  /// elsewhere. A process that is stopped for longer than `timeout` is a
  /// failure. `onAbort` is called with the reason, on any thread, when this run
  /// is aborted. The arguments must outlive this.
  Watcher(const program::ProgramT &program, StatusPage &page, Control &control,
          const std::vector<uint32_t> &hostRanks,
          std::chrono::milliseconds timeout,
          const std::function<void(const std::string &)> &onAbort);
  /// Stops watching. Requires that this rank is done.
  ~Watcher();
  Watcher(const Watcher &) = delete;
  Watcher &operator=(const Watcher &) = delete;

  /// This rank has failed: marks it so, tells the others, sees to a report and
  /// ends the process with status 1.
  [[noreturn]] void fail(const std::string &reason);

  /// This rank was aborted by one that may be on another host: ends the process
  /// like fail, but leaves it to the watcher to report what this host knows.
  [[noreturn]] void leave(const std::string &reason);

  /// `signal` tells this process to end: sees to a report, which names the dead
  /// if there are any, and ends it with status 128 + signal. Any thread may
  /// call it.
  [[noreturn]] void end(int signal);

private:
  void watch();
  void hear(const std::string &reason);
  bool anyFailed() const;
  bool isDead(uint32_t rank) const;
  std::vector<uint32_t> findDead() const;
  bool handIn(const std::vector<uint32_t> &dead,
              const std::string &headline) noexcept;
  void
  writeForAll(const std::vector<std::vector<std::byte>> &handedIn) noexcept;
  int tell(int exitStatus, const std::vector<uint32_t> &dead,
           const std::string &headline);

  const program::ProgramT &program;
  StatusPage &page;
  Control &control;
  const uint32_t self;
  const std::vector<uint32_t> ranks;
  const uint32_t next; ///< after self on this host; after the last the first
  const std::chrono::milliseconds timeout;
  std::mutex mutex;
  std::condition_variable condition;
  bool stopping = false;
  std::optional<std::string> heard; ///< why the run was aborted
  std::thread thread;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_WATCH_WATCHER_H
