//===- CalibrateOnThreads.cpp - Calibrates with threads as ranks ----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/CalibrateRanks.h"
#include "runtime/channel/InProcess.h"
#include "runtime/control/InProcess.h"
#include "runtime/control/Messages.h"
#include "runtime/train/AbortScope.h"
#include "runtime/train/Capacity.h"

#include <exception>
#include <mutex>
#include <thread>

using namespace chimera::runtime;

void chimera::runtime::calibrateOnThreads(uint32_t ranks,
                                          const CalibrationSetup &use) {
  const Cores cores = findCores();
  const HostResources share{
      ranks, shareCores(cores, ranks, use.threads, ProgressMode::Off)};
  // All ranks are threads of this process, so they are on one host.
  const HostOfRank host{.host = 0,
                        .cores = cores.usable,
                        .threads = share.threads.computing,
                        .memory = hostMemory()};
  const std::vector<std::unique_ptr<Control>> controls =
      makeInProcessControls(ranks);
  std::vector<std::unique_ptr<Channels>> ofHost;
  if (!use.accelerator) {
    ofHost = makeInProcessChannels(ranks);
    // One handler is enough: if it aborts the channels of rank 0, the channels
    // of all ranks are aborted.
    controls.front()->onAbort(
        [&](const std::string &reason) { ofHost.front()->abort(reason); });
  }
  std::mutex mutex;
  std::exception_ptr failure; // of the first rank that failed
  auto fail = [&](uint32_t rank, const std::exception &error) {
    {
      std::lock_guard lock(mutex);
      if (!failure)
        failure = std::current_exception();
    }
    controls[rank]->abort(error.what());
  };
  auto measure = [&](uint32_t rank, Device *device, Channels &channels) {
    Control &control = *controls[rank];
    try {
      const Calibration found = calibrate(
          control, channels,
          {.stages = use.stages,
           .host = host,
           .timeout = use.timeout,
           .effort = use.effort,
           .fail = [&](const std::string &why) { control.abort(why); },
           .device = device});
      if (rank == 0)
        use.onResult(found, share);
      barrier(control, use.timeout, "all ranks to end their measurements");
    } catch (const std::exception &error) {
      // Report the failure now: later the device frees its memory, which may
      // wait for other ranks.
      fail(rank, error);
      throw;
    }
  };
  auto run = [&](uint32_t rank) {
    try {
      use.setThreads(share.threads.computing);
      if (!use.accelerator)
        return measure(rank, nullptr, *ofHost[rank]);
      Control &control = *controls[rank];
      const std::unique_ptr<Device> device = use.accelerator->makeDevice(
          deviceNumberOf(rank, use.accelerator->devices()), rank);
      const std::unique_ptr<Channels> channels =
          use.accelerator->makeChannels(*device, control, use.timeout);
      AbortScope aborted(control, *channels);
      measure(rank, device.get(), *channels);
    } catch (const std::exception &error) {
      fail(rank, error);
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
