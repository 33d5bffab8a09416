//===- CalibrateAsRank.cpp - Calibrates as one rank of a job --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/CalibrateRanks.h"
#include "runtime/control/Messages.h"
#include "runtime/system/Deadline.h"
#include "runtime/train/AbortScope.h"
#include "runtime/train/Capacity.h"
#include "runtime/watch/CallWatch.h"
#include "runtime/watch/EndProcess.h"
#include "runtime/watch/Report.h"
#include "runtime/watch/Watchdog.h"

#include <algorithm>

using namespace chimera::runtime;

void chimera::runtime::calibrateAsRank(
    const CalibrationSetup &use, const JobOptions &jobOptions,
    const std::vector<AgreedValue> &agreedValues) {
  const bool overMpi = jobOptions.transport == JobTransport::Mpi;
  auto shareAmong = [&](uint32_t ranks, ProgressMode mode) -> HostResources {
    return {ranks, shareCores(findCores(), ranks, use.threads,
                              overMpi ? mode : ProgressMode::Off)};
  };
  // Use the launcher's number of ranks on this host until `connect` has found
  // the exact number.
  HostResources share = shareAmong(
      jobOptions.job ? jobOptions.job->ranksOnHost : 1, jobOptions.progress);
  std::optional<Watchdog> limit(std::in_place, watcherTimeout(use.timeout),
                                "all ranks to start");
  std::optional<JoinedJob> joined(
      std::in_place, joinOptions(jobOptions, share.threads.progress));
  if (joined->ranks() < 2)
    throw std::invalid_argument("expected at least 2 ranks to calibrate with, "
                                "got " +
                                std::to_string(joined->ranks()));
  // Declared outside of the try block: after a failure they must exist until
  // the process ends.
  std::unique_ptr<Device> device;
  std::unique_ptr<Channels> channels;
  bool canTell = false; // whether this rank can tell others of a failure
  auto fail = [&](const std::string &reason, bool hasHeard = false) {
    limit.reset(); // otherwise it would report first, with less information
    if (canTell && !hasHeard)
      joined->control().abort("rank " + std::to_string(joined->rank()) +
                              " failed: " + reason);
    else
      waitForFirstReport(hasHeard ? UINT32_MAX : 0);
    jobOptions.onFailure ? jobOptions.onFailure(reason)
                         : writeReport(reason + "\n");
    endProcess(1);
  };
  try {
    joined->connect(use.timeout,
                    [](const std::string &what) { writeReport(what + "\n"); });
    canTell = true;
    Control &control = joined->control();
    const std::vector<uint32_t> hostRanks = joined->hostRanks();
    const bool allowProgressThread =
        jobOptions.progress != ProgressMode::Auto ||
        joined->allowsProgressThread();
    share = shareAmong(static_cast<uint32_t>(hostRanks.size()),
                       allowProgressThread ? jobOptions.progress
                                           : ProgressMode::Off);
    limit.reset();
    checkAgreement(control, agreedValues, use.timeout);
    use.setThreads(share.threads.computing);
    if (use.accelerator) {
      // If this fails, it usually fails on all ranks in the same way. So only
      // one rank reports (waitForFirstReport in `fail`).
      canTell = false;
      const auto localRank =
          std::ranges::find(hostRanks, joined->rank()) - hostRanks.begin();
      device = use.accelerator->makeDevice(
          deviceNumberOf(static_cast<uint32_t>(localRank),
                         use.accelerator->devices()),
          joined->rank());
      channels = use.accelerator->makeChannels(*device, control, use.timeout);
      canTell = true;
    } else {
      Watchdog making(use.timeout, "all ranks to create their channels");
      channels =
          joined->makeChannels(share.threads.progress, use.transportAllReduce);
    }
    {
      AbortScope aborted(control, *channels);
      // This function ends the process, because the rank's thread is inside a
      // library call and cannot react.
      auto failForThis = [&](const std::string &why) { fail(why); };
      CallWatch calls([&] { return channels->callsInFlight(); }, use.timeout,
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
        use.onResult(found, share);
      barrier(control, use.timeout, "all ranks to end their measurements");
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
