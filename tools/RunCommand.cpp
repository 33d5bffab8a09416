//===- RunCommand.cpp - What chimera-run does -----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Joins what the runtime's folders offer: which stages, which data, which
// transport; then what the root prints and saves.
//
//===----------------------------------------------------------------------===//

#include "tools/RunCommand.h"

#include "runtime/control/InProcess.h"
#include "runtime/control/join/Join.h"
#include "runtime/proof/ProvenFile.h"
#include "runtime/proof/Verify.h"
#include "runtime/stage/Mix.h"
#include "runtime/stage/torch/Tensors.h"
#include "runtime/stage/torch/TransformerStage.h"
#include "runtime/system/Deadline.h"
#include "runtime/train/Capacity.h"
#include "runtime/train/Gather.h"
#include "runtime/train/Launch.h"
#include "runtime/train/Run.h"
#include "runtime/train/Sequential.h"
#include "runtime/train/SignsOfLife.h"
#include "runtime/watch/Report.h"
#include "runtime/watch/Watchdog.h"
#include "tools/Restart.h"
#include "tools/Results.h"
#include "tools/RunFiles.h"
#include "tools/Workload.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <thread>
#include <unistd.h>

using namespace chimera;
using namespace chimera::runtime;

namespace {
constexpr double kTimeout = 1800;

/// Only stages of tensors compute with more than one thread.
RankThreads threadsOf(const RunSettings &settings, const std::string &stages,
                      uint32_t ranksOnHost, ProgressWish wish) {
  return shareCores(findCores(), ranksOnHost,
                    stages == kTransformer ? settings.threads : 1, wish);
}

ProgressWish progressWish(const RunSettings &settings) {
  return settings.progress == kOn    ? ProgressWish::On
         : settings.progress == kOff ? ProgressWish::Off
                                     : ProgressWish::Auto;
}

/// Refuses what would end in a process that is killed for its memory.
void refuse(const std::string &fault) {
  if (!fault.empty())
    throw std::invalid_argument(fault);
}

/// A rank that never answers should not keep the others for ever.
std::chrono::milliseconds timeoutOf(const RunSettings &settings) {
  double seconds = settings.timeout.value_or(kTimeout);
  return seconds > 0 ? std::chrono::milliseconds(static_cast<int64_t>(
                           std::ceil(std::min(seconds, 1e9) * 1000)))
                     : std::chrono::milliseconds(kForever);
}

int runSequentially(const RunSettings &settings,
                    const program::ProgramT &program, Workload &load) {
  RankThreads threads = threadsOf(settings, load.kind, 1, ProgressWish::Off);
  Signals signals;
  std::atomic<uint64_t> stepsDone = 0;
  std::atomic<bool> stop = false, isSaving = false;
  Listening listening(&signals, [&](int signal) {
    if (signal == SIGUSR1)
      return stop.store(true);
    writeReport(
        "ended by " + signalName(signal) +
        (isSaving.load()
             ? " while saving and evaluating\n"
             : " in step " + std::to_string(stepsDone.load() + 1) + "\n"));
    _exit(128 + signal);
  });
  auto useThreads = [&] { setThreads(static_cast<int>(threads.computing)); };
  useThreads();
  refuse(faultOfSequentialCapacity(
      program, load.kind == kTransformer ? 1 : program.stages.size(),
      hostMemory()));
  std::vector<std::unique_ptr<Stage>> stages;
  if (load.kind == kTransformer)
    stages.push_back(makeWholeModel(program));
  else
    for (uint32_t s = 0; s < program.stages.size(); ++s)
      stages.push_back(load.stages(program, s));
  checkRoom(settings, program);
  Results results(settings, program, load);
  int64_t begin = steadyNanoseconds();
  auto seconds = [&] {
    return static_cast<double>(steadyNanoseconds() - begin) * 1e-9;
  };
  SequentialResult trained =
      trainSequentially(program, stages, *load.data, settings.steps,
                        [&](uint64_t step, Loss loss) {
                          results.onStep({step, loss, seconds()});
                          stepsDone.store(step + 1);
                          return !stop.load();
                        });
  isSaving.store(true);
  RunResult result = {.weights = std::move(trained.weights),
                      .gradients = std::move(trained.gradients),
                      .ranks = {},
                      .profiles = {},
                      .steps = stepsDone.load(),
                      .seconds = seconds()};
  // As in a run of one rank: nobody hears the signs, but what hangs is told.
  std::vector<std::unique_ptr<Control>> alone = makeInProcessControls(1);
  SignsOfLife signs(*alone[0], timeoutOf(settings));
  signs.during(
      [&] {
        useThreads();
        results.finish(result, {});
      },
      [](const std::string &reason) {
        writeReport(reason + "\n");
        _exit(1);
      });
  return results.exitStatus();
}

/// Makes `run` from the settings. The references in it are to the arguments.
TrainingRun makeRun(const RunSettings &settings,
                    const program::ProgramT &program, Workload &load,
                    const RankThreads &threads) {
  TrainingRun run{
      .program = program, .stages = load.stages, .data = *load.data};
  run.steps = settings.steps;
  run.timeout = timeoutOf(settings);
  run.gatherGradients = !settings.saveGradients.empty();
  run.checkReplicas = settings.checkReplicas;
  run.profile = !settings.profile.empty();
  run.meter = load.meter.get();
  if (load.kind == kTransformer)
    run.onThread = [&threads] {
      setThreads(static_cast<int>(threads.computing));
    };
  return run;
}

void announce(const RunSettings &settings, const program::ProgramT &program,
              const Workload &load, const char *how, const RankThreads &threads,
              uint32_t ranksOnHost) {
  if (settings.quiet)
    return;
  std::printf("%s: %s x %s, %s, %s stages", program.schedule.c_str(),
              program::counted(program.workers.size(), "worker").c_str(),
              program::counted(program.data_parallel, "copy").c_str(), how,
              load.kind.c_str());
  if (load.kind == kTransformer)
    std::printf(", %s a rank",
                program::counted(threads.computing, "thread").c_str());
  std::printf("\n");
  // Ranks that sleep need no core.
  uint32_t cores = findCores().host;
  if (ranksOnHost > cores && load.kind != kSynthetic)
    std::printf("%u ranks share %s: steps take longer than predicted, for "
                "predictions are of a core for each rank\n",
                ranksOnHost, program::counted(cores, "core").c_str());
  std::fflush(stdout);
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

std::vector<Shared> sharedSettings(const RunSettings &settings,
                                   const Workload &load) {
  auto digest = [](const std::string &text) {
    return digestOf(std::as_bytes(std::span(text)));
  };
  return {{"--stages", digest(load.kind)},
          {"--all-reduce", digest(settings.allReduce)},
          {"--data and --hold-out", load.text ? load.text->digest() : 0},
          // The root alone writes, and no user knows which rank it is.
          {"--save", digest(settings.save)},
          {"--save-gradients", digest(settings.saveGradients)},
          {"--log", digest(settings.log)},
          {"--profile", digest(settings.profile)},
          {"--evaluate-batches", settings.evaluateBatches}};
}

/// Throws std::invalid_argument where nothing tells how to find the others.
JoinOptions joinOptions(JobTransport transport, const std::optional<Job> &job,
                        const RankThreads &threads) {
  JoinOptions options{.transport = transport, .mayProgress = threads.progress};
  if (transport == JobTransport::Mpi)
    return options;
  if (!job || !job->place)
    throw std::invalid_argument(
        "--transport tcp needs to know of the other ranks: start it by "
        "torchrun, "
        "or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT");
  options.store = {job->place->host, job->place->port, job->place->isServed,
                   job->place->run};
  options.rank = job->rank;
  options.ranks = job->ranks;
  return options;
}

int runPipeline(const RunSettings &settings, const program::ProgramT &program,
                Workload &load, const std::optional<Job> &job,
                std::optional<JobTransport> transport) {
  bool overMpi = transport == JobTransport::Mpi;
  uint32_t onHost = job ? job->ranksOnHost : program::rankCount(program);
  auto share = [&](ProgressWish wish) {
    return threadsOf(settings, load.kind, onHost, wish);
  };
  // No rank needs to know of another's decision.
  RankThreads threads =
      share(overMpi ? progressWish(settings) : ProgressWish::Off);
  Signals signals;
  TrainingRun run = makeRun(settings, program, load, threads);
  run.signals = &signals;
  checkStages(run);

  // The root opens the log and prints; it may be any rank of a job.
  std::unique_ptr<Results> results;
  auto prepare = [&](const char *how) {
    checkRoom(settings, program);
    results = std::make_unique<Results>(settings, program, load);
    announce(settings, program, load, how, threads, onHost);
    run.onStep = [&](const StepEvent &event) { results->onStep(event); };
    run.onResult = [&](const RunResult &result) {
      if (settings.checkReplicas && !settings.quiet)
        std::printf("all replicas are bit-identical\n");
      Cores cores = findCores();
      results->finish(result, summarize(program, result,
                                        // A launcher binds each rank to some.
                                        transport ? cores.host : cores.usable));
    };
  };
  auto checkCapacity = [&](std::span<const uint32_t> ranks) {
    refuse(faultOfCapacity(program, ranks, hostMemory()));
  };
  // Every rank must know what will be gathered.
  run.gatherWeights = !settings.save.empty() || load.kind == kExact ||
                      evaluates(settings, load);
  if (!transport) {
    std::vector<uint32_t> all(program::rankCount(program));
    std::iota(all.begin(), all.end(), 0);
    checkCapacity(all);
    if (settings.device == kSimulated) {
      prepare("on simulated devices");
      runSimulated(run, settings.deviceSeed);
    } else {
      prepare("ranks are threads of this process");
      runInProcess(run);
    }
    return results->exitStatus();
  }
  // Without MPI who waits for the others knows which are missing.
  std::optional<Watchdog> limit(
      std::in_place,
      run.timeout + (overMpi ? std::chrono::milliseconds(0) : 2 * kAfterWaits),
      "all ranks to start");
  std::optional<JoinedJob> joined(std::in_place,
                                  joinOptions(*transport, job, threads));
  checkRanks(program, joined->ranks());
  uint32_t firstToTell = 0; // until ranks can tell each other
  bool canTell = false;
  try {
    joined->meet(run.timeout);
    // The ranks of a host have its memory and its cores in common.
    std::vector<uint32_t> hostRanks = joined->hostRanks();
    onHost = static_cast<uint32_t>(hostRanks.size());
    threads = share(
        !overMpi || (settings.progress == kAuto && !joined->allowsProgress())
            ? ProgressWish::Off
            : progressWish(settings));
    firstToTell = hostRanks.front();
    checkCapacity(hostRanks);
    firstToTell = 0;
    std::unique_ptr<Channels> channels = joined->makeChannels(
        threads.progress, settings.allReduce == kTransport);
    canTell = true;
    limit.reset();
    run.shared = sharedSettings(settings, load);
    if (joined->rank() == rootOf(program))
      prepare(!overMpi           ? "a process a rank over TCP"
              : threads.progress ? "a process with a progress thread a rank "
                                   "over MPI"
                                 : "a process a rank over MPI");
    runInJob(run, joined->control(), *channels, hostRanks);
  } catch (const std::exception &error) {
    if (!canTell)
      giveWay(firstToTell);
    // The other ranks may be well: leave without meeting them again.
    std::fprintf(stderr, "chimera-run: %s\n", error.what());
    std::fflush(nullptr);
    _exit(1);
  }
  limit.emplace(run.timeout, "all ranks to leave, when all was done");
  joined.reset();
  return results ? results->exitStatus() : 0;
}

/// What moves values between the processes of a job; nothing where ranks are
/// threads of this one.
std::optional<JobTransport> transportOf(const RunSettings &settings,
                                        const std::optional<Job> &job) {
  if (settings.transport == kMpi)
    return JobTransport::Mpi;
  if (settings.transport == kTcp)
    return JobTransport::Tcp;
  if (settings.transport != kAuto || !job || settings.sequential ||
      settings.device != kHost)
    return std::nullopt;
  return std::string_view(job->launcher) == "torchrun" ? JobTransport::Tcp
                                                       : JobTransport::Mpi;
}

/// What can be known to fail is refused before anything is trained.
void checkSettings(const RunSettings &settings) {
  if (!settings.saveGradients.empty() && settings.steps == 0)
    throw std::invalid_argument("--save-gradients needs at least one step");
  bool hasProcesses = settings.transport == kMpi || settings.transport == kTcp;
  if (settings.sequential && hasProcesses)
    throw std::invalid_argument(
        "--sequential runs on one device: leave out --transport " +
        settings.transport);
  if (settings.sequential && settings.checkReplicas)
    throw std::invalid_argument("--check-replicas is for pipelines: leave out "
                                "--sequential, which has one replica");
  if (settings.sequential && !settings.profile.empty())
    throw std::invalid_argument(
        "--profile is for pipelines: leave out --sequential");
  bool isSimulated = settings.device == kSimulated;
  if (isSimulated && settings.sequential)
    throw std::invalid_argument(
        "--device simulated is for pipelines: leave out "
        "--sequential");
  if (isSimulated && hasProcesses)
    throw std::invalid_argument("--device simulated runs all ranks in one "
                                "process: leave out --transport " +
                                settings.transport);
  if (isSimulated && !settings.profile.empty())
    throw std::invalid_argument("--profile is of hosts: simulated devices have "
                                "no durations, leave it out");
  if (!isSimulated && settings.given.count("--device-seed"))
    throw std::invalid_argument(
        "--device-seed is for --device simulated: give that too");
  if (settings.steps == 0 && !settings.profile.empty())
    throw std::invalid_argument("--profile needs at least one step");
  uint32_t cores = findCores().host;
  if (settings.threads > cores * kMostThreadsOnCore)
    throw std::invalid_argument("--threads: expected at most " +
                                std::to_string(cores * kMostThreadsOnCore) +
                                ", " + std::to_string(kMostThreadsOnCore) +
                                " for each of " +
                                program::counted(cores, "core") + ", got " +
                                std::to_string(settings.threads));
  checkFiles(settings);
}

/// Proves a program for the transports that there are: with each of them a send
/// may wait for its receive. All message models but buffered ask for that.
void checkMessages(const std::string &file, program::ProgramT &program) {
  if (program.message_model != program::MessageModel::Buffered)
    return;
  program.message_model = program::MessageModel::Rendezvous;
  for (const program::Violation &violation : program::verifyProgram(program))
    throw std::runtime_error(
        file +
        ": refused: proven for buffered messages, but here a send may "
        "wait for its receive: compile it with --messages=rendezvous\n"
        "  " +
        violation.message);
}
} // namespace

void chimera::giveWay(uint32_t first) {
  if (std::optional<Job> job = findJob(); job && job->rank != first)
    std::this_thread::sleep_for(std::chrono::seconds(2));
}

int chimera::runCommand(const RunSettings &settings) {
  checkSettings(settings);
  std::optional<Job> job = findJob();
  // Only what trains on text has threads. The ranks of this process are not
  // known yet, so it may start again in vain; a pipe can be read only once.
  if (!settings.data.empty())
    letThreadsSleep(threadsOf(settings, kTransformer,
                              job ? job->ranksOnHost : 1,
                              progressWish(settings))
                        .computing);
  std::string error;
  std::optional<program::ProgramT> program =
      program::readProgramFile(settings.program, error);
  if (!program)
    throw std::runtime_error(error);

  std::optional<JobTransport> transport = transportOf(settings, job);
  if (job && !transport && job->ranks > 1)
    throw std::invalid_argument(std::string(settings.sequential ? "--sequential"
                                            : settings.device == kSimulated
                                                ? "--device simulated"
                                                : "--transport in-process") +
                                " needs one process, got " +
                                std::to_string(job->ranks) + " from " +
                                job->launcher);
  if (transport != JobTransport::Mpi && settings.progress == kOn)
    throw std::invalid_argument(
        "--progress on is for runs over MPI: elsewhere messages move without "
        "help, leave it out");
  if (transport != JobTransport::Mpi && settings.allReduce == kTransport)
    throw std::invalid_argument(
        "--all-reduce transport is for runs over MPI: elsewhere there is only "
        "the ordered one, leave it out");
  if (transport) {
    joinOptions(*transport, job, {});
    checkRanks(*program, job ? job->ranks : 1);
  }

  Workload load = makeWorkload(settings, *program);
  if (settings.sequential)
    return runSequentially(settings, *program, load);
  checkMessages(settings.program, *program);
  return runPipeline(settings, *program, load, job, transport);
}
