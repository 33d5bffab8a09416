//===- RunAsRank.cpp - A run with this process as a rank ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/RunAsRank.h"

#include "runtime/device/Host.h"
#include "runtime/system/Deadline.h"
#include "runtime/system/WaitError.h"
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

StoreAddress storeOf(const MeetingPlace &place) {
  return {place.host, place.port, place.isServed, place.run};
}

/// `source` says where the number comes from.
void checkRanks(const program::ProgramT &program, uint32_t got,
                const std::string &source = "") {
  uint32_t expected = program::rankCount(program);
  if (got != expected)
    throw std::invalid_argument(
        "program expects " + program::counted(expected, "rank") + " (" +
        program::counted(program.workers.size(), "worker") + " x " +
        program::counted(program.data_parallel, "copy") + "), got " +
        std::to_string(got) + source + ": run mpirun -n " +
        std::to_string(expected) +
        " chimera-run …, torchrun --no-python --nproc-per-node " +
        std::to_string(expected) +
        " -- chimera-run …, or chimera-run alone for ranks in one process");
}
} // namespace

JoinOptions chimera::runtime::joinOptions(const JobUse &use, bool mayProgress) {
  JoinOptions options{.transport = use.transport, .mayProgress = mayProgress};
  if (use.transport == JobTransport::Mpi)
    return options;
  if (!use.job || !use.job->place)
    throw std::invalid_argument(
        "--transport tcp needs a rank and the address of rank 0: start it with "
        "torchrun, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, a "
        "number from 1 to 65535; got " +
        environmentOf({"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}));
  options.store = storeOf(*use.job->place);
  options.rank = use.job->rank;
  options.ranks = use.job->ranks;
  return options;
}

JobTransport chimera::runtime::transportOf(const Job &job) {
  std::string_view launcher = job.launcher;
  return launcher == "mpirun" || launcher == "srun" ? JobTransport::Mpi
                                                    : JobTransport::Tcp;
}

void chimera::runtime::decline(const std::string &reason) noexcept {
  try {
    std::optional<Job> job = findJob();
    if (job && job->place && transportOf(*job) == JobTransport::Tcp)
      declineAtStore(storeOf(*job->place), job->rank, reason);
  } catch (const std::exception &) {
    // No rank can be reached, or the job itself is the error.
  }
  giveWay();
}

void chimera::runtime::checkJob(const program::ProgramT &program,
                                const JobUse &use) {
  joinOptions(use, false);
  checkRanks(program, use.job ? use.job->ranks : 1,
             use.job ? std::string(" from ") + use.job->launcher : "");
}

void chimera::runtime::runAsRank(TrainingRun run, const HostUse &hostUse,
                                 const JobUse &jobUse) {
  bool overMpi = jobUse.transport == JobTransport::Mpi;
  auto shareAmong = [&](uint32_t ranks, ProgressWish wish) -> HostShare {
    return {ranks, shareCores(findCores(), ranks, hostUse.threads,
                              overMpi ? wish : ProgressWish::Off)};
  };
  // Based on the launcher's numbers. Each rank can decide alone.
  HostShare share = shareAmong(jobUse.job ? jobUse.job->ranksOnHost
                                          : program::rankCount(run.program),
                               jobUse.progress);
  if (hostUse.setThreads)
    run.onThread = [&] { hostUse.setThreads(share.threads.computing); };
  checkRun(run);
  // Without MPI, this limit is a last resort: each wait has its own timeout and
  // knows which ranks are missing.
  constexpr std::chrono::seconds kLastResort(5);
  const std::chrono::milliseconds starting =
      overMpi ? run.timeout : 2 * afterWaits(run.timeout) + kLastResort;
  std::optional<Watchdog> limit(std::in_place, starting, "all ranks to start");
  std::optional<JoinedJob> joined(std::in_place,
                                  joinOptions(jobUse, share.threads.progress));
  checkRanks(run.program, joined->ranks());
  constexpr uint32_t kNobody = UINT32_MAX;
  uint32_t firstToTell = 0; // used until ranks can send messages
  std::atomic<bool> canTell{false};
  auto say = [&](const std::string &reason) {
    jobUse.onFailure ? jobUse.onFailure(reason) : writeReport(reason + "\n");
  };
  auto abort = [&](const std::string &reason) {
    if (canTell)
      joined->control().abort("rank " + std::to_string(joined->rank()) +
                              " failed: " + reason);
  };
  // Ends the process. Rank `first` reports at once. If `first` is kNobody, this
  // rank has only heard of another's failure: each rank then waits a moment
  // before it reports. The other ranks may be healthy, so this does not wait
  // for them.
  auto end = [&](const std::string &reason, uint32_t first) {
    runOrEnd("reporting a failure", [&] {
      const bool isTold =
          tellOfStopped(joined->claimName(), joined->hostProcesses(), reason,
                        [&](const std::string &text) {
                          abort(text);
                          say(text);
                        });
      if (isTold)
        return;
      if (canTell && first != kNobody)
        abort(reason);
      else
        giveWay(first);
      say(reason);
    });
    endProcess(1);
  };
  auto fail = [&](const std::string &reason, uint32_t first) {
    limit.reset(); // its message could come first, and says less
    end(reason, first);
  };
  // After success they are destroyed before the process ends. After a failure
  // they are not, since destroying channels waits for the other ranks.
  std::unique_ptr<Device> device;
  std::unique_ptr<Channels> channels;
  try {
    joined->meet(run.timeout,
                 [](const std::string &what) { writeReport(what + "\n"); });
    // From here on, this rank knows the processes of the others.
    limit.emplace(starting, "all ranks to start",
                  [&](const std::string &reason) { end(reason, 0); });
    // The ranks of a host share its memory and its cores.
    std::vector<uint32_t> hostRanks = joined->hostRanks();
    bool mayProgress =
        jobUse.progress != ProgressWish::Auto || joined->allowsProgress();
    share = shareAmong(static_cast<uint32_t>(hostRanks.size()),
                       mayProgress ? jobUse.progress : ProgressWish::Off);
    firstToTell = hostRanks.front();
    if (!run.accelerator)
      checkCapacity(run.program, hostRanks);
    firstToTell = 0;
    if (run.accelerator) {
      auto place =
          std::ranges::find(hostRanks, joined->rank()) - hostRanks.begin();
      device = run.accelerator->makeDevice(
          deviceOf(static_cast<uint32_t>(place), run.accelerator->devices()),
          joined->rank());
      channels = run.accelerator->makeChannels(*device, joined->control(),
                                               run.timeout);
    } else {
      device = makeHostDevice();
      channels = joined->makeChannels(share.threads.progress, run.ownAllReduce);
    }
    canTell = true;
    limit.reset();
    if (joined->rank() == rootOf(run.program) && hostUse.onReady)
      hostUse.onReady(share);
    runInJob(run, joined->control(), *device, *channels, hostRanks);
  } catch (const WaitError &error) {
    bool hasHeard = error.reason == WaitError::Reason::Aborted;
    fail(error.what(), hasHeard ? kNobody : firstToTell);
  } catch (const std::exception &error) {
    fail(error.what(), firstToTell);
  } catch (...) {
    fail(kWithoutWords, firstToTell);
  }
  limit.emplace(run.timeout, "all ranks to leave after their work");
  channels.reset();
  device.reset();
  joined.reset();
}
