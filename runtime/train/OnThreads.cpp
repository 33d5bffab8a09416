//===- OnThreads.cpp - Ranks as threads of this process -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/OnThreads.h"

#include "runtime/train/CheckpointedSteps.h"
#include "runtime/watch/EndProcess.h"
#include "runtime/watch/HangDetector.h"
#include "runtime/watch/Report.h"

#include <condition_variable>
#include <mutex>
#include <numeric>
#include <thread>

using namespace chimera;
using namespace chimera::runtime;

namespace {
/// The number of running threads, and the report on the first failure. The
/// report is empty if no rank has failed.
struct Failure {
  std::mutex mutex;
  std::condition_variable ended;
  uint32_t running = 0;
  std::string report;
};
} // namespace

void chimera::runtime::checkThreadCount(uint32_t ranks) {
  if (ranks > kMaxThreads)
    throw std::invalid_argument(
        "expected at most " + std::to_string(kMaxThreads) +
        " ranks as threads of one process, got " + std::to_string(ranks) +
        ": run it under mpirun, one process per rank");
}

void chimera::runtime::runOnThreads(
    const TrainingRun &run, StatusPage &page,
    const std::vector<std::unique_ptr<Control>> &controls,
    const std::function<void(uint32_t, const OnFailure &)> &work) {
  const uint32_t ranks = page.ranks();
  std::vector<uint32_t> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  HangDetector hangDetector(page, run.timeout);
  Failure failure;
  failure.running = ranks;

  auto failLocked = [&](uint32_t rank, const std::string &reason) {
    // Report only the first failure. Other ranks fail later because of the
    // first one.
    if (!failure.report.empty())
      return;
    page.of(rank).fail(reason);
    failure.report = report(run.program, accountOf(page, all, {}, ""));
    controls[rank]->abort("rank " + std::to_string(rank) + " failed");
  };
  auto fail = [&](uint32_t rank, const std::string &reason) {
    std::lock_guard lock(failure.mutex);
    failLocked(rank, reason);
  };
  SignalListener listening(run.signals, [&](int signal) {
    if (signal == SIGUSR1)
      return page.askToStop();
    if (signal == SIGUSR2)
      return handleSaveSignal(run, page, [&] { page.askToSave(); });
    std::lock_guard lock(failure.mutex);
    if (!failure.report.empty()) {
      writeReport(failure.report);
      endProcess(1);
    }
    writeReport(run.program, page, all, {},
                kEndedBy + signalName(signal) + run.signals->unsavedText());
    endProcess(128 + signal);
  });
  auto runThread = [&](uint32_t rank) {
    runOrEnd("running a rank", [&] {
      try {
        work(rank, [&](const std::string &reason) { fail(rank, reason); });
      } catch (const std::exception &error) {
        fail(rank, error.what());
      } catch (...) {
        fail(rank, kUnknownError);
      }
      std::lock_guard lock(failure.mutex);
      --failure.running;
      failure.ended.notify_all();
    });
  };
  std::vector<std::thread> threads;
  threads.reserve(ranks);
  // The threads use local variables of this function. So no exception may leave
  // this function before the threads have ended.
  runOrEnd("starting the ranks", [&] {
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      try {
        threads.emplace_back(runThread, rank);
      } catch (const std::exception &error) {
        fail(rank, std::string("cannot start its thread: ") + error.what());
        std::lock_guard lock(failure.mutex);
        failure.running -= ranks - rank;
        break;
      }
    }
  });

  {
    constexpr std::chrono::milliseconds kLook(50);
    std::unique_lock lock(failure.mutex);
    while (!failure.ended.wait_for(lock, kLook, [&] {
      return failure.running == 0 || !failure.report.empty();
    }))
      if (std::optional<uint32_t> rank = hangDetector.find())
        runOrEnd("reporting a rank that does not advance", [&] {
          failLocked(*rank, timeoutMessage(run.timeout,
                                           "rank " + std::to_string(*rank) +
                                               " to advance"));
        });
    // A rank may compute for a long time or forever. So if a rank does not end
    // soon after a failure, end the process.
    if (!failure.ended.wait_for(lock, run.patience,
                                [&] { return failure.running == 0; })) {
      writeReport(failure.report);
      endProcess(1);
    }
  }
  for (std::thread &thread : threads)
    thread.join();
  if (!failure.report.empty())
    throw RunFailure(failure.report.substr(0, failure.report.rfind('\n')));
}
