//===- Calibrate.cpp - chimera-run --calibrate ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/Commands.h"

#include "runtime/calibrate/CalibrateRanks.h"
#include "runtime/calibrate/MachineText.h"
#include "runtime/model/SyntheticStage.h"
#include "runtime/model/graph/GraphStage.h"
#include "runtime/model/tensors/Tensors.h"
#include "runtime/program/Output.h"
#include "runtime/random/Mix.h"
#include "tools/CheckSettings.h"
#include "tools/CommonOptions.h"
#include "tools/RunFiles.h"

#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;

/// A description of the ranks for the output: where they run, on what they
/// compute, and how they sum.
static std::string describeRanks(const RunSettings &settings,
                                 const std::optional<JobTransport> &transport,
                                 const HostResources &share) {
  std::string where = !transport ? "threads of one process" : "a process each";
  if (settings.device == kCuda)
    where += ", on GPUs";
  else
    where += (!transport                        ? ", "
              : *transport == JobTransport::Mpi ? ", over MPI, "
                                                : ", over TCP, ") +
             program::countWithNoun(share.threads.computing, "thread") +
             " each";
  if (settings.stages == kSynthetic)
    where += ", whose layers sleep (--stages synthetic)";
  if (settings.allReduce == kTransport)
    where += ", with the transport's own all-reduces";
  return where;
}

/// Prints the result and writes it to the file of --calibrate.
static void save(const RunSettings &settings, const Calibration &found,
                 const std::string &where) {
  if (!settings.quiet)
    std::printf("%s, %s\n", program::countWithNoun(found.ranks, "rank").c_str(),
                where.c_str());
  std::printf("%s", machineTable(found).c_str());
  const std::string text = machineText(found, where);
  std::string error;
  if (!program::writeAtomically(settings.calibrate,
                                {std::as_bytes(std::span(text))}, error))
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
  const bool isSynthetic = settings.stages == kSynthetic;
  std::unique_ptr<Accelerator> accelerator;
  DevicePlacement placement;
  if (settings.device == kCuda) {
    accelerator =
        loadCuda({.stagesOnHost = isSynthetic,
                  .transportAllReduce = settings.allReduce == kTransport});
    placement = accelerator->placement();
  }
  CalibrationSetup use;
  use.accelerator = accelerator.get();
  use.transportAllReduce = settings.allReduce == kTransport;
  if (isSynthetic)
    use.stages = makeSyntheticStages(settings.unitNanoseconds);
  else
    use.stages = [placement](const program::ProgramT &program, uint32_t stage) {
      return makeGraphStage(program, stage, nullptr, placement);
    };
  use.threads = settings.threads;
  use.setThreads = [](uint32_t threads) {
    setThreads(static_cast<int>(threads));
  };
  use.timeout = timeoutOf(settings);
  use.onResult = [&](const Calibration &found, const HostResources &share) {
    save(settings, found, describeRanks(settings, transport, share));
  };
  if (!transport)
    return calibrateOnThreads(settings.ranks, use);
  auto digest = [](const std::string &text) {
    return digestOf(std::as_bytes(std::span(text)));
  };
  calibrateAsRank(use,
                  {.transport = *transport,
                   .job = job,
                   .progress = progressMode(settings),
                   .onFailure = reportFailure},
                  {{"--calibrate", digest(settings.calibrate)},
                   {"--stages", isSynthetic ? 1u : 0u},
                   {"--device", digest(settings.device)},
                   {"--all-reduce", digest(settings.allReduce)},
                   {"--timeout", static_cast<uint64_t>(use.timeout.count())}});
}
