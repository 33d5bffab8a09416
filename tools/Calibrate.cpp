//===- Calibrate.cpp - Measures the machine -------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/Calibrate.h"

#include "runtime/calibrate/CalibrateRanks.h"
#include "runtime/calibrate/MachineText.h"
#include "runtime/program/Output.h"
#include "runtime/stage/Mix.h"
#include "runtime/stage/torch/Tensors.h"
#include "runtime/stage/torch/TransformerStage.h"
#include "tools/CheckSettings.h"
#include "tools/Restart.h"
#include "tools/RunFiles.h"
#include "tools/Wishes.h"

#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;

/// Prints and writes what was found.
static void save(const RunSettings &settings, const Calibration &found,
                 const HostShare &share, const std::string &where) {
  const std::string threads =
      program::counted(share.threads.computing, "thread") + " each";
  if (!settings.quiet)
    std::printf("%s, %s, %s\n", program::counted(found.ranks, "rank").c_str(),
                where.c_str(), threads.c_str());
  std::printf("%s", machineTable(found).c_str());
  const std::string text = machineText(found, where + ", " + threads);
  std::string error;
  if (!program::writeWhole(settings.calibrate, {std::as_bytes(std::span(text))},
                           error))
    throw std::runtime_error(error);
  if (!settings.quiet)
    std::printf("saved %s\n", settings.calibrate.c_str());
  std::fflush(stdout);
}

void chimera::calibrateMachine(const RunSettings &settings,
                               const std::optional<Job> &job) {
  const std::optional<JobTransport> transport = chooseTransport(settings, job);
  checkLaunch(settings, job, transport);
  if (!job || job->rank == 0)
    checkFiles(settings);
  letThreadsSleep(shareCores(findCores(),
                             transport && job ? job->ranksOnHost
                                              : std::max(1u, settings.ranks),
                             settings.threads, progressWish(settings))
                      .computing);
  CalibrationUse use;
  use.stages = [](const program::ProgramT &program, uint32_t stage) {
    return makeTransformerStage(program, stage);
  };
  use.threads = settings.threads;
  use.setThreads = [](uint32_t threads) {
    setThreads(static_cast<int>(threads));
  };
  use.timeout = timeoutOf(settings);
  const std::string where = !transport ? "threads of one process"
                            : *transport == JobTransport::Mpi
                                ? "a process each, over MPI"
                                : "a process each, over TCP";
  use.onFound = [&](const Calibration &found, const HostShare &share) {
    save(settings, found, share, where);
  };
  if (!transport)
    return calibrateOnThreads(settings.ranks, use);
  calibrateAsRank(
      use,
      {.transport = *transport,
       .job = job,
       .progress = progressWish(settings),
       .onFailure = tellFailure},
      {{"--calibrate", digestOf(std::as_bytes(std::span(settings.calibrate)))},
       {"--timeout", static_cast<uint64_t>(use.timeout.count())}});
}
