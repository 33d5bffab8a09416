//===- Watcher.h - Notices dead and failed ranks ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread that detects dead and failed ranks, if each rank is a process.
// Without it, the other ranks would not know that a rank has died, and mpirun
// would end them a second later without a message. The thread checks the
// processes of its host and their entries on the status page every 50 ms. If a
// process is dead or has failed, the first watcher that sees this makes a
// report, and every process of the host ends at once (EndProcess.h): there is
// nothing to save, and MPI_Abort and MPI_Finalize take seconds. If there are
// several hosts, one host writes the report for all hosts that can reach it
// (Control::submitAccount).
//
// Two states need one more check. A stopped process (SIGSTOP) cannot report
// itself, and not every wait for it times out. A dead process has a PID until
// its parent collects its status (a zombie), so it looks alive. So each rank
// also checks whether the next rank of its host is stopped or a zombie.
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
  /// Starts to watch the processes of `hostRanks`. If another host aborts the
  /// run, `control` tells this object. If a process is stopped for longer than
  /// `timeout`, this is a failure. If the run is aborted, `onAbort` is called
  /// with the reason, on any thread. The arguments must outlive this object.
  Watcher(const program::ProgramT &program, StatusPage &page, Control &control,
          const std::vector<uint32_t> &hostRanks,
          std::chrono::milliseconds timeout,
          const std::function<void(const std::string &)> &onAbort);
  /// Stops watching. Requires that this rank is done.
  ~Watcher();
  Watcher(const Watcher &) = delete;
  Watcher &operator=(const Watcher &) = delete;

  /// Called if this rank has failed: marks its entry, tells the other ranks,
  /// makes a report, and ends the process with status 1.
  [[noreturn]] void fail(const std::string &reason);

  /// Called if another rank, perhaps on another host, aborted the run. Waits
  /// 0.2 s, so that the watchers of this host can write a report first. Then
  /// makes a report if there is none, and ends the process.
  [[noreturn]] void endAfterAbort(const std::string &reason);

  /// Called if the signal `signal` must end this process. Makes a report, which
  /// names the dead ranks if there are any. Then ends the process with status
  /// 128 + signal, or with status 1 if a rank has died or failed. Any thread
  /// may call it. The report has `unsaved` after the name of the signal
  /// (Signals::unsavedText).
  [[noreturn]] void endForSignal(int signal, const std::string &unsaved);

private:
  void watch();
  void noteAbort(const std::string &reason);
  bool anyFailed() const;
  /// Says which of the host's ranks has failed, and why.
  std::string firstFailure() const;
  bool isDead(uint32_t rank) const;
  std::vector<uint32_t> findDead() const;
  bool submitAccount(const std::vector<uint32_t> &dead,
                     const std::string &headline) noexcept;
  void
  writeForAll(const std::vector<std::vector<std::byte>> &handedIn) noexcept;
  void continueStopped() const;
  int reportOrWait(int exitStatus, const std::vector<uint32_t> &dead,
                   const std::string &headline);

  const program::ProgramT &program;
  StatusPage &page;
  Control &control;
  const uint32_t self;
  const std::vector<uint32_t> ranks;
  const uint32_t next; ///< the next higher rank of this host, or the lowest
  const std::chrono::milliseconds timeout;
  std::mutex mutex;
  std::condition_variable condition;
  bool stopping = false;
  std::optional<std::string> abortReason; ///< set if the run was aborted
  std::thread thread;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_WATCH_WATCHER_H
