//===- RunAsRank.cpp - A run of which this process is a rank --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/RunAsRank.h"

#include "runtime/train/Capacity.h"
#include "runtime/watch/EndProcess.h"
#include "runtime/watch/Report.h"
#include "runtime/watch/Watchdog.h"

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

/// Throws std::invalid_argument where nothing tells how to find the others.
JoinOptions joinOptions(const JobUse &use, bool mayProgress) {
  JoinOptions options{.transport = use.transport, .mayProgress = mayProgress};
  if (use.transport == JobTransport::Mpi)
    return options;
  if (!use.job || !use.job->place)
    throw std::invalid_argument(
        "--transport tcp needs to know of the other ranks: start it by "
        "torchrun, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, a "
        "number from 1 to 65535; got " +
        environmentOf({"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}));
  const MeetingPlace &place = *use.job->place;
  options.store = {place.host, place.port, place.isServed, place.run};
  options.rank = use.job->rank;
  options.ranks = use.job->ranks;
  return options;
}

void checkRanks(const program::ProgramT &program, uint32_t got) {
  uint32_t expected = program::rankCount(program);
  if (got != expected)
    throw std::invalid_argument(
        "program expects " + program::counted(expected, "rank") + " (" +
        program::counted(program.workers.size(), "worker") + " x " +
        program::counted(program.data_parallel, "copy") + "), got " +
        std::to_string(got) + ": run mpirun -n " + std::to_string(expected) +
        " chimera-run …, torchrun --no-python --nproc-per-node " +
        std::to_string(expected) +
        " chimera-run …, or chimera-run alone for ranks in one process");
}
} // namespace

JobTransport chimera::runtime::transportOf(const Job &job) {
  return std::string_view(job.launcher) == "torchrun" ? JobTransport::Tcp
                                                      : JobTransport::Mpi;
}

void chimera::runtime::checkJob(const program::ProgramT &program,
                                const JobUse &use) {
  joinOptions(use, false);
  checkRanks(program, use.job ? use.job->ranks : 1);
}

void chimera::runtime::runAsRank(TrainingRun run, const HostUse &hostUse,
                                 const JobUse &jobUse) {
  bool overMpi = jobUse.transport == JobTransport::Mpi;
  auto shareAmong = [&](uint32_t ranks, ProgressWish wish) -> HostShare {
    return {ranks, shareCores(findCores(), ranks, hostUse.threads,
                              overMpi ? wish : ProgressWish::Off)};
  };
  // As far as the launcher says. No rank needs to know of another's decision.
  HostShare share = shareAmong(jobUse.job ? jobUse.job->ranksOnHost
                                          : program::rankCount(run.program),
                               jobUse.progress);
  if (hostUse.setThreads)
    run.onThread = [&] { hostUse.setThreads(share.threads.computing); };
  checkStages(run);
  // Without MPI who waits for the others knows which are missing.
  std::optional<Watchdog> limit(
      std::in_place,
      run.timeout + (overMpi ? std::chrono::milliseconds(0) : 2 * kAfterWaits),
      "all ranks to start");
  std::optional<JoinedJob> joined(std::in_place,
                                  joinOptions(jobUse, share.threads.progress));
  checkRanks(run.program, joined->ranks());
  uint32_t firstToTell = 0; // until ranks can tell each other
  bool canTell = false;
  try {
    joined->meet(run.timeout);
    // The ranks of a host have its memory and its cores in common.
    std::vector<uint32_t> hostRanks = joined->hostRanks();
    bool mayProgress =
        jobUse.progress != ProgressWish::Auto || joined->allowsProgress();
    share = shareAmong(static_cast<uint32_t>(hostRanks.size()),
                       mayProgress ? jobUse.progress : ProgressWish::Off);
    firstToTell = hostRanks.front();
    checkCapacity(run.program, hostRanks);
    firstToTell = 0;
    std::unique_ptr<Channels> channels =
        joined->makeChannels(share.threads.progress, jobUse.ownAllReduce);
    canTell = true;
    limit.reset();
    if (joined->rank() == rootOf(run.program) && hostUse.onReady)
      hostUse.onReady(share);
    runInJob(run, joined->control(), *channels, hostRanks);
  } catch (const std::exception &error) {
    if (!canTell)
      giveWay(firstToTell);
    if (jobUse.onFailure)
      jobUse.onFailure(error.what());
    else
      writeReport(std::string(error.what()) + "\n");
    // The other ranks may be well: leave without meeting them again.
    endProcess(1);
  }
  limit.emplace(run.timeout, "all ranks to leave, when all was done");
  joined.reset();
}
