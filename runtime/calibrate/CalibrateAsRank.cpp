//===- CalibrateAsRank.cpp - Calibrates as one rank of a job --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/CalibrateRanks.h"
#include "runtime/control/Messages.h"
#include "runtime/system/Deadline.h"
#include "runtime/train/AbortedChannels.h"
#include "runtime/train/Capacity.h"
#include "runtime/watch/CallWatch.h"
#include "runtime/watch/EndProcess.h"
#include "runtime/watch/Report.h"
#include "runtime/watch/Watchdog.h"

#include <algorithm>

using namespace chimera::runtime;

void chimera::runtime::calibrateAsRank(const CalibrationUse &use,
                                       const JobUse &jobUse,
                                       const std::vector<Shared> &shared) {
  const bool overMpi = jobUse.transport == JobTransport::Mpi;
  auto shareAmong = [&](uint32_t ranks, ProgressWish wish) -> HostShare {
    return {ranks, shareCores(findCores(), ranks, use.threads,
                              overMpi ? wish : ProgressWish::Off)};
  };
  // The launcher's number of ranks on this host, until it is known exactly.
  HostShare share =
      shareAmong(jobUse.job ? jobUse.job->ranksOnHost : 1, jobUse.progress);
  std::optional<Watchdog> limit(std::in_place, afterWaits(use.timeout),
                                "all ranks to start");
  std::optional<JoinedJob> joined(std::in_place,
                                  joinOptions(jobUse, share.threads.progress));
  if (joined->ranks() < 2)
    throw std::invalid_argument("expected at least 2 ranks to calibrate with, "
                                "got " +
                                std::to_string(joined->ranks()));
  // Declared here because a failure aborts them until the process ends.
  std::unique_ptr<Device> device;
  std::unique_ptr<Channels> channels;
  bool canTell = false; // whether the other ranks can be told of a failure
  auto fail = [&](const std::string &reason, bool hasHeard = false) {
    limit.reset(); // or it would report first, with less information
    if (canTell && !hasHeard)
      joined->control().abort("rank " + std::to_string(joined->rank()) +
                              " failed: " + reason);
    else
      giveWay(hasHeard ? UINT32_MAX : 0);
    jobUse.onFailure ? jobUse.onFailure(reason) : writeReport(reason + "\n");
    endProcess(1);
  };
  try {
    joined->meet(use.timeout,
                 [](const std::string &what) { writeReport(what + "\n"); });
    canTell = true;
    Control &control = joined->control();
    const std::vector<uint32_t> hostRanks = joined->hostRanks();
    const bool mayProgress =
        jobUse.progress != ProgressWish::Auto || joined->allowsProgress();
    share = shareAmong(static_cast<uint32_t>(hostRanks.size()),
                       mayProgress ? jobUse.progress : ProgressWish::Off);
    limit.reset();
    checkAgreement(control, shared, use.timeout);
    use.setThreads(share.threads.computing);
    if (use.accelerator) {
      // If ranks fail, most fail in the same way, so the first one reports.
      canTell = false;
      const auto place =
          std::ranges::find(hostRanks, joined->rank()) - hostRanks.begin();
      device = use.accelerator->makeDevice(
          deviceOf(static_cast<uint32_t>(place), use.accelerator->devices()),
          joined->rank());
      channels = use.accelerator->makeChannels(*device, control, use.timeout);
      canTell = true;
    } else {
      Watchdog making(use.timeout, "all ranks to create their channels");
      channels = joined->makeChannels(share.threads.progress, use.ownAllReduce);
    }
    {
      AbortedChannels aborted(control, *channels);
      // Ends the process, because this thread is inside MPI and cannot be told
      // anything.
      auto failForThis = [&](const std::string &why) { fail(why); };
      CallWatch calls([&] { return channels->callsUnderWay(); }, use.timeout,
                      failForThis);
      const Calibration found =
          calibrate(control, *channels,
                    {.stages = use.stages,
                     .host = {.host = hostRanks.front(),
                              .cores = findCores().host,
                              .threads = share.threads.computing,
                              .memory = hostMemory()},
                     .timeout = use.timeout,
                     .effort = use.effort,
                     .fail = failForThis,
                     .device = device.get()});
      if (joined->rank() == 0)
        use.onFound(found, share);
      meet(control, use.timeout, "all ranks to end their measurements");
    }
  } catch (const WaitError &error) {
    fail(error.what(), error.reason == WaitError::Reason::Aborted);
  } catch (const std::exception &error) {
    fail(error.what());
  }
  limit.emplace(use.timeout, "all ranks to leave after their work");
  channels.reset();
  device.reset();
  joined.reset();
}
