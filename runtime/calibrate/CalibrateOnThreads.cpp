//===- CalibrateOnThreads.cpp - Ranks that are threads calibrate ----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/CalibrateRanks.h"
#include "runtime/channel/InProcess.h"
#include "runtime/control/InProcess.h"
#include "runtime/train/Capacity.h"

#include <exception>
#include <mutex>
#include <thread>

using namespace chimera::runtime;

void chimera::runtime::calibrateOnThreads(uint32_t ranks,
                                          const CalibrationUse &use) {
  const Cores cores = findCores();
  const HostShare share{
      ranks, shareCores(cores, ranks, use.threads, ProgressWish::Off)};
  // All ranks are of this process.
  const HostOfRank host{.host = 0,
                        .cores = cores.usable,
                        .threads = share.threads.computing,
                        .memory = hostMemory()};
  const std::vector<std::unique_ptr<Control>> controls =
      makeInProcessControls(ranks);
  const std::vector<std::unique_ptr<Channels>> channels =
      makeInProcessChannels(ranks);
  // The channels of one abort those of all.
  controls.front()->onAbort(
      [&](const std::string &reason) { channels.front()->abort(reason); });
  std::mutex mutex;
  std::exception_ptr failure; // the first
  auto run = [&](uint32_t rank) {
    try {
      use.setThreads(share.threads.computing);
      const Calibration found = calibrate(*controls[rank], *channels[rank],
                                          {.stages = use.stages,
                                           .host = host,
                                           .timeout = use.timeout,
                                           .fail = [&](const std::string &why) {
                                             controls[rank]->abort(why);
                                           }});
      if (rank == 0)
        use.onFound(found, share);
    } catch (const std::exception &error) {
      {
        std::lock_guard lock(mutex);
        if (!failure)
          failure = std::current_exception();
      }
      controls[rank]->abort(error.what());
    }
  };
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back(run, rank);
  for (std::thread &thread : threads)
    thread.join();
  if (failure)
    std::rethrow_exception(failure);
}
