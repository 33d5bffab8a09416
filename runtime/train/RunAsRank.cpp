//===- RunAsRank.cpp - A run with this process as a rank ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/RunAsRank.h"

#include "runtime/device/Host.h"
#include "runtime/system/Deadline.h"
#include "runtime/train/Capacity.h"
#include "runtime/watch/EarlyReport.h"
#include "runtime/watch/EndProcess.h"
#include "runtime/watch/Report.h"
#include "runtime/watch/Watchdog.h"

#include <algorithm>
#include <atomic>
#include <string_view>

using namespace chimera;
using namespace chimera::runtime;

namespace {
/// "RANK='0', WORLD_SIZE unset".
std::string environmentOf(std::initializer_list<const char *> names) {
  std::string all;
  for (const char *name : names) {
    const char *value = std::getenv(name);
    all += (all.empty() ? "" : ", ") + std::string(name) +
           (value ? "='" + std::string(value) + "'" : " unset");
  }
  return all;
}

StoreAddress storeOf(const MasterAddress &master) {
  return {master.host, master.port, master.isServed, master.run};
}

/// Checks that the job has as many ranks as the program. `source` says where
/// the job's number comes from.
void checkRanks(const program::ProgramT &program, uint32_t got,
                const std::string &source = "") {
  uint32_t expected = program::rankCount(program);
  if (got != expected)
    throw std::invalid_argument(
        "program expects " + program::countWithNoun(expected, "rank") + " (" +
        program::countWithNoun(program.workers.size(), "worker") + " x " +
        program::countWithNoun(program.data_parallel, "copy") + "), got " +
        std::to_string(got) + source + ": run mpirun -n " +
        std::to_string(expected) +
        " chimera-run …, torchrun --no-python --nproc-per-node " +
        std::to_string(expected) +
        " -- chimera-run …, or chimera-run alone for ranks in one process");
}
} // namespace

JoinOptions chimera::runtime::joinOptions(const JobOptions &use,
                                          bool allowProgressThread) {
  JoinOptions options{.transport = use.transport,
                      .allowProgressThread = allowProgressThread,
                      .startMpi = use.startMpi};
  if (use.transport == JobTransport::Mpi)
    return options;
  if (!use.job || !use.job->master)
    throw std::invalid_argument(
        "--transport tcp needs a rank and the address of rank 0: start it with "
        "torchrun, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, a "
        "number from 1 to 65535; got " +
        environmentOf({"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}));
  options.store = storeOf(*use.job->master);
  options.rank = use.job->rank;
  options.ranks = use.job->ranks;
  return options;
}

JobTransport chimera::runtime::transportOf(const Job &job) {
  std::string_view launcher = job.launcher;
  return launcher == "mpirun" || launcher == "srun" ? JobTransport::Mpi
                                                    : JobTransport::Tcp;
}

void chimera::runtime::reportFailureToJob(const std::string &reason) noexcept {
  try {
    std::optional<Job> job = findJob();
    if (job && job->master && transportOf(*job) == JobTransport::Tcp)
      reportFailureAtStore(storeOf(*job->master), job->rank, reason);
  } catch (const std::exception &) {
    // Ignore this error: either no rank can be reached, or the job itself is
    // wrong.
  }
  waitForFirstReport();
}

void chimera::runtime::checkJob(const program::ProgramT &program,
                                const JobOptions &use) {
  joinOptions(use, false);
  checkRanks(program, use.job ? use.job->ranks : 1,
             use.job ? std::string(" from ") + use.job->launcher : "");
}

void chimera::runtime::runAsRank(TrainingRun run,
                                 const HostOptions &hostOptions,
                                 const JobOptions &jobOptions) {
  bool overMpi = jobOptions.transport == JobTransport::Mpi;
  auto shareAmong = [&](uint32_t ranks, ProgressMode mode) -> HostResources {
    return {ranks, shareCores(findCores(), ranks, hostOptions.threads,
                              overMpi ? mode : ProgressMode::Off)};
  };
  // The ranks are not connected yet. So compute the share from the launcher's
  // numbers alone.
  HostResources share =
      shareAmong(jobOptions.job ? jobOptions.job->ranksOnHost
                                : program::rankCount(run.program),
                 jobOptions.progress);
  if (hostOptions.setThreads)
    run.onThread = [&] { hostOptions.setThreads(share.threads.computing); };
  // A stage may put tensors on the current GPU. This is the rank's own GPU only
  // after the device is made.
  if (!run.accelerator)
    checkRun(run);
  // Without MPI, this limit is a last resort. Each wait has its own timeout,
  // whose error names the missing ranks.
  constexpr std::chrono::seconds kLastResort(5);
  const std::chrono::milliseconds starting =
      overMpi ? run.timeout : 2 * watcherTimeout(run.timeout) + kLastResort;
  std::optional<Watchdog> limit(std::in_place, starting, "all ranks to start");
  std::optional<JoinedJob> joined(
      std::in_place, joinOptions(jobOptions, share.threads.progress));
  checkRanks(run.program, joined->ranks());
  constexpr uint32_t kNobody = UINT32_MAX;
  uint32_t firstToTell = 0; // the rank that reports until canTell
  std::atomic<bool> canTell{false};
  auto say = [&](const std::string &reason) {
    jobOptions.onFailure ? jobOptions.onFailure(reason)
                         : writeReport(reason + "\n");
  };
  auto abort = [&](const std::string &reason) {
    if (canTell)
      joined->control().abort("rank " + std::to_string(joined->rank()) +
                              " failed: " + reason);
  };
  // Ends the process. Rank `first` reports at once. If `first` is kNobody,
  // another rank has failed and should report, so this rank waits a moment
  // before it reports. It does not wait for the other ranks to end, since they
  // may be healthy.
  auto end = [&](const std::string &reason, uint32_t first) {
    runOrEnd("reporting a failure", [&] {
      const bool isTold =
          reportStoppedRanks(joined->hostLockName(), joined->hostProcesses(),
                             reason, [&](const std::string &text) {
                               abort(text);
                               say(text);
                             });
      if (isTold)
        return;
      if (canTell && first != kNobody)
        abort(reason);
      else
        waitForFirstReport(first);
      say(reason);
    });
    endProcess(1);
  };
  auto fail = [&](const std::string &reason, uint32_t first) {
    limit.reset(); // or its message could come first, which says less
    end(reason, first);
  };
  // After a success, device and channels are destroyed before the process ends.
  // After a failure they are not destroyed, because destroying channels waits
  // for the other ranks.
  std::unique_ptr<Device> device;
  std::unique_ptr<Channels> channels;
  try {
    joined->connect(run.timeout,
                    [](const std::string &what) { writeReport(what + "\n"); });
    // Now this rank knows the processes of the others. So if the limit passes,
    // `end` can report which of them are stopped.
    limit.emplace(starting, "all ranks to start",
                  [&](const std::string &reason) { end(reason, 0); });
    // The ranks of a host share its memory and its cores.
    std::vector<uint32_t> hostRanks = joined->hostRanks();
    bool allowProgressThread = jobOptions.progress != ProgressMode::Auto ||
                               joined->allowsProgressThread();
    share = shareAmong(static_cast<uint32_t>(hostRanks.size()),
                       allowProgressThread ? jobOptions.progress
                                           : ProgressMode::Off);
    firstToTell = hostRanks.front();
    checkCapacity(run.program, hostRanks, run.checkpoints.has_value(),
                  readAheadBytesOf(run), run.accelerator != nullptr);
    firstToTell = 0;
    if (run.accelerator) {
      auto localRank =
          std::ranges::find(hostRanks, joined->rank()) - hostRanks.begin();
      device = run.accelerator->makeDevice(
          deviceNumberOf(static_cast<uint32_t>(localRank),
                         run.accelerator->devices()),
          joined->rank());
      checkRun(run);
      channels = run.accelerator->makeChannels(*device, joined->control(),
                                               run.timeout);
    } else {
      device = makeHostDevice();
      channels =
          joined->makeChannels(share.threads.progress, run.transportAllReduce);
    }
    canTell = true;
    limit.reset();
    if (joined->rank() == rootOf(run.program) && hostOptions.onReady)
      hostOptions.onReady(share);
    runInJob(run, joined->control(), *device, *channels, hostRanks);
  } catch (const WaitError &error) {
    bool hasHeard = error.reason == WaitError::Reason::Aborted;
    fail(error.what(), hasHeard ? kNobody : firstToTell);
  } catch (const std::exception &error) {
    fail(error.what(), firstToTell);
  } catch (...) {
    fail(kUnknownError, firstToTell);
  }
  limit.emplace(run.timeout, "all ranks to leave after their work");
  channels.reset();
  device.reset();
  joined.reset();
}
