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

#include "runtime/core/Gather.h"
#include "runtime/core/Launch.h"
#include "runtime/core/Profile.h"
#include "runtime/core/Progress.h"
#include "runtime/core/Report.h"
#include "runtime/core/Run.h"
#include "runtime/core/Sequential.h"
#include "runtime/core/Watchdog.h"
#include "runtime/program/File.h"
#include "runtime/program/Output.h"
#include "runtime/program/Verify.h"
#include "runtime/stage/ExactStage.h"
#include "runtime/stage/Mix.h"
#include "runtime/stage/SyntheticStage.h"
#include "runtime/stage/torch/Tensors.h"
#include "runtime/stage/torch/TextData.h"
#include "runtime/stage/torch/TransformerStage.h"
#include "runtime/stage/torch/Weights.h"
#include "tools/RunFiles.h"
#ifdef CHIMERA_HAVE_MPI
#include "runtime/transport/mpi/Session.h"
#endif

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>
#include <unistd.h>

using namespace chimera;
using namespace chimera::runtime;

namespace {
constexpr const char *kAuto = "auto", *kTransformer = "transformer",
                     *kExact = "exact", *kSynthetic = "synthetic",
                     *kInProcess = "in-process", *kMpi = "mpi", *kOn = "on",
                     *kOff = "off", *kOrdered = "ordered",
                     *kTransport = "transport";
constexpr double kMpiTimeout = 1800;

/// What computes and on what data.
struct Workload {
  std::string kind;
  StageFactory stages;
  std::unique_ptr<DataSource> data;
  TextData *text = nullptr; ///< `data`, if it is text
  std::unique_ptr<MemoryMeter> meter;
};

Workload makeWorkload(const RunSettings &settings,
                      const program::ProgramT &program) {
  Workload load;
  load.kind = settings.stages;
  if (load.kind == kAuto)
    load.kind = program.model ? kTransformer : kExact;
  if (load.kind != kTransformer) {
    for (const auto &[option, value] :
         {std::pair("--data", &settings.data),
          {"--save", &settings.save},
          {"--save-gradients", &settings.saveGradients}})
      if (!value->empty())
        throw std::invalid_argument(
            std::string(option) + " is for transformer stages, and " +
            (settings.stages == kAuto ? "the program has no model"
                                      : "--stages is " + load.kind));
    load.stages = load.kind == kExact
                      ? StageFactory(makeExactStage)
                      : makeSyntheticStages(settings.unitNanoseconds);
    load.data = std::make_unique<SyntheticData>(program.seed);
    return load;
  }
  if (settings.data.empty())
    throw std::invalid_argument(
        "transformer stages need text to train on: give --data FILE, or "
        "--stages exact or synthetic to run without");
  auto text =
      std::make_unique<TextData>(settings.data, program, settings.holdOut);
  load.text = text.get();
  load.data = std::move(text);
  load.stages = makeTransformerStage;
  load.meter = std::make_unique<TensorMeter>();
  return load;
}

/// Whether the run ends with a look at held-out text.
bool evaluates(const RunSettings &settings, const Workload &load) {
  return load.text && load.text->heldOutBytes() > 0 &&
         settings.evaluateBatches > 0;
}

/// What is known at the end, for people and for the log.
class Results {
public:
  Results(const RunSettings &settings, const program::ProgramT &program,
          const Workload &load)
      : settings(settings), program(program), load(load),
        progress({settings.steps, load.text ? tokensPerStep(program) : 0,
                  settings.quiet, settings.log}) {}

  void onStep(const StepEvent &event) {
    loss = event.loss;
    progress.step(event);
    if (loss && !std::isfinite(loss->mean))
      throw std::runtime_error(
          "the loss of step " + std::to_string(event.step + 1) + " is " +
          std::to_string(loss->mean) +
          ": training diverged, try a lower learning_rate");
  }

  void finish(const std::vector<std::byte> &weights,
              const std::vector<std::byte> &gradients, uint64_t steps,
              double seconds, nlohmann::json summary) {
    summary["steps"] = steps;
    summary["seconds"] = seconds;
    if (steps < settings.steps)
      std::printf("stopped by SIGUSR1 after step %llu of %llu\n",
                  static_cast<unsigned long long>(steps),
                  static_cast<unsigned long long>(settings.steps));
    if (loss) {
      summary["loss"] = loss->mean;
      if (load.text)
        std::printf("final loss %.6f after ", loss->mean);
      std::printf("%llu steps in %.1f s\n",
                  static_cast<unsigned long long>(steps), seconds);
    }
    if (!weights.empty()) {
      char digest[20];
      std::snprintf(digest, sizeof(digest), "%016llx",
                    static_cast<unsigned long long>(digestOf(weights)));
      summary["weights_digest"] = digest;
      std::printf("digest of the weights %s\n", digest);
    }
    save(settings.save, weights);
    save(settings.saveGradients, gradients);
    if (evaluates(settings, load)) {
      uint64_t windows = settings.evaluateBatches * program.micro_batch_size;
      double held = heldOutLoss(program, weights, *load.text, windows);
      double unigram = load.text->unigramLoss(windows);
      summary["held_out_loss"] = held;
      summary["unigram_loss"] = unigram;
      std::printf("held-out loss %.4f, byte-unigram model %.4f (ratio %.3f)\n",
                  held, unigram, held / unigram);
    }
    std::fflush(stdout);
    progress.finish(summary);
  }

private:
  static uint64_t tokensPerStep(const program::ProgramT &program) {
    return program.model
               ? uint64_t(program.micro_batches) * program.data_parallel *
                     program.micro_batch_size * program.model->context
               : 0;
  }

  void save(const std::string &file, const std::vector<std::byte> &bytes) {
    std::string error;
    if (file.empty())
      return;
    if (!saveWeights(program, bytes, file, error))
      throw std::runtime_error(error);
    if (!settings.quiet)
      std::printf("saved %s\n", file.c_str());
  }

  const RunSettings &settings;
  const program::ProgramT &program;
  const Workload &load;
  Progress progress;
  std::optional<Loss> loss;
};

void saveProfile(const std::string &file, const std::string &document,
                 bool quiet) {
  std::string error;
  if (!program::writeWhole(file, {std::as_bytes(std::span(document))}, error))
    throw std::runtime_error(error);
  if (!quiet)
    std::printf("saved %s\n", file.c_str());
}

/// The ranks' use of memory and the runtime's own cost.
nlohmann::json summarize(const program::ProgramT &program,
                         const RunResult &result, uint32_t cores) {
  nlohmann::json summary;
  uint64_t instructions = 0;
  for (size_t rank = 0; rank < result.ranks.size(); ++rank) {
    const RankUse &use = result.ranks[rank];
    instructions += use.instructions;
    summary["ranks"].push_back(
        {{"rank", rank},
         {"instructions", use.instructions},
         {"arena_bytes", use.arenaBytes},
         {"stash_bytes", use.stashBytes},
         {"peak_bytes", use.peakBytes},
         {"stated_peak_bytes",
          program.workers[rank % program.workers.size()]->peak_bytes}});
  }
  summary["instructions"] = instructions;
  auto share =
      static_cast<double>(std::min<size_t>(result.ranks.size(), cores));
  if (instructions)
    summary["seconds_per_instruction"] =
        result.seconds * share / static_cast<double>(instructions);
  return summary;
}

uint32_t threadsOf(const RunSettings &settings, uint32_t ranksOnHost) {
  return settings.threads ? settings.threads : threadsPerRank(ranksOnHost);
}

int runSequentially(const RunSettings &settings,
                    const program::ProgramT &program, Workload &load) {
  uint32_t threads = threadsOf(settings, 1);
  Signals signals;
  std::atomic<uint64_t> stepsDone = 0;
  std::atomic<bool> stop = false;
  Listening listening(&signals, [&](int signal) {
    if (signal == SIGUSR1)
      return stop.store(true);
    writeReport("ended by " + signalName(signal) + " in step " +
                std::to_string(stepsDone.load() + 1) + "\n");
    _exit(128 + signal);
  });
  setThreads(static_cast<int>(threads));
  std::vector<std::unique_ptr<Stage>> stages;
  if (load.kind == kTransformer)
    stages.push_back(makeWholeModel(program));
  else
    for (uint32_t s = 0; s < program.stages.size(); ++s)
      stages.push_back(load.stages(program, s));
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
  results.finish(trained.weights, trained.gradients, stepsDone.load(),
                 seconds(), {});
  return 0;
}

/// A process that never answers should not keep the others for ever; within a
/// process none can be lost, but all may be suspended for long.
std::chrono::milliseconds timeoutOf(const RunSettings &settings, bool overMpi) {
  double seconds = settings.timeout.value_or(overMpi ? kMpiTimeout : 0);
  return seconds > 0 ? std::chrono::milliseconds(static_cast<int64_t>(
                           std::ceil(std::min(seconds, 1e9) * 1000)))
                     : std::chrono::milliseconds(kForever);
}

/// Makes `run` from the settings. The references in it are to the arguments.
TrainingRun makeRun(const RunSettings &settings,
                    const program::ProgramT &program, Workload &load,
                    bool overMpi, uint32_t threads) {
  TrainingRun run{
      .program = program, .stages = load.stages, .data = *load.data};
  run.steps = settings.steps;
  run.timeout = timeoutOf(settings, overMpi);
  run.gatherGradients = !settings.saveGradients.empty();
  run.checkReplicas = settings.checkReplicas;
  run.profile = !settings.profile.empty();
  run.meter = load.meter.get();
  if (load.kind == kTransformer)
    run.onThread = [threads] { setThreads(static_cast<int>(threads)); };
  return run;
}

void announce(const RunSettings &settings, const program::ProgramT &program,
              const Workload &load, const char *how, uint32_t threads) {
  if (settings.quiet)
    return;
  std::printf("%s: %s x %s, %s, %s stages", program.schedule.c_str(),
              program::counted(program.workers.size(), "worker").c_str(),
              program::counted(program.data_parallel, "copy").c_str(), how,
              load.kind.c_str());
  if (load.kind == kTransformer)
    std::printf(", %u thread%s a rank", threads, threads == 1 ? "" : "s");
  std::printf("\n");
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
        " chimera-run …, or chimera-run alone for ranks in one process");
}

#ifdef CHIMERA_HAVE_MPI
std::vector<Shared> sharedSettings(const RunSettings &settings,
                                   const Workload &load) {
  auto digest = [](const std::string &text) {
    return digestOf(std::as_bytes(std::span(text)));
  };
  return {{"--stages", digest(load.kind)},
          {"--all-reduce", digest(settings.allReduce)},
          {"--data and --hold-out", load.text ? load.text->digest() : 0}};
}
#endif

int runPipeline(const RunSettings &settings, const program::ProgramT &program,
                Workload &load, const std::optional<Job> &job, bool overMpi) {
  uint32_t onHost = job ? job->ranksOnHost : program::rankCount(program);
  uint32_t threads = threadsOf(settings, onHost);
  Signals signals;
  TrainingRun run = makeRun(settings, program, load, overMpi, threads);
  run.signals = &signals;
  checkStages(run);

  // The root opens the log and prints; it may be any rank of a job.
  std::unique_ptr<Results> results;
  auto prepare = [&](const char *how) {
    results = std::make_unique<Results>(settings, program, load);
    announce(settings, program, load, how, threads);
    run.onStep = [&](const StepEvent &event) { results->onStep(event); };
    run.onResult = [&](const RunResult &result) {
      if (settings.checkReplicas && !settings.quiet)
        std::printf("all replicas are bit-identical\n");
      if (run.profile)
        saveProfile(settings.profile,
                    formatProfile(program, result.profiles, rootOf(program)),
                    settings.quiet);
      results->finish(result.weights, result.gradients, result.steps,
                      result.seconds,
                      summarize(program, result,
                                // A launcher binds each rank to some.
                                overMpi ? hostCores() : usableCores()));
    };
  };
  // Every rank must know what will be gathered.
  run.gatherWeights = !settings.save.empty() || load.kind == kExact ||
                      evaluates(settings, load);
  if (!overMpi) {
    prepare("ranks are threads of this process");
    runInProcess(run);
    return 0;
  }
#ifdef CHIMERA_HAVE_MPI
  // No rank needs to know of another's decision.
  bool progress =
      settings.progress == kOn ||
      (settings.progress == kAuto && hasCoreForProgress(onHost, threads));
  std::optional<Watchdog> limit(std::in_place, run.timeout,
                                "all ranks to start");
  MpiSession session(progress ? MpiThreads::Several : MpiThreads::One);
  checkRanks(program, session.ranks());
  progress = progress && (settings.progress == kOn || session.allowsProgress());
  std::unique_ptr<Transport> transport;
  try {
    transport = session.makeTransport(
        {.progressThread = progress,
         .ownAllReduce = settings.allReduce == kTransport});
    limit.reset();
    run.shared = sharedSettings(settings, load);
    if (session.rank() == rootOf(program))
      prepare(progress ? "a process with a progress thread a rank over MPI"
                       : "a process a rank over MPI");
    runInJob(run, *transport, session.hostRanks());
  } catch (const std::exception &error) {
    if (!transport)
      giveWay();
    // The other ranks may be well: leave without meeting them again.
    std::fprintf(stderr, "chimera-run: %s\n", error.what());
    std::fflush(nullptr);
    _exit(1);
  }
  limit.emplace(run.timeout, "all ranks to leave, when all was done");
#endif
  return 0;
}
} // namespace

std::vector<std::string> chimera::stageKinds() {
  return {kAuto, kTransformer, kExact, kSynthetic};
}

std::vector<std::string> chimera::transportKinds() {
  return {kAuto, kInProcess, kMpi};
}

std::vector<std::string> chimera::progressKinds() { return {kAuto, kOn, kOff}; }

std::vector<std::string> chimera::allReduceKinds() {
  return {kOrdered, kTransport};
}

namespace {
/// What can be known to fail is refused before anything is trained.
void checkSettings(const RunSettings &settings) {
  if (!settings.saveGradients.empty() && settings.steps == 0)
    throw std::invalid_argument("--save-gradients needs at least one step");
  if (settings.sequential && settings.transport == kMpi)
    throw std::invalid_argument(
        "--sequential runs on one device: leave out --transport mpi");
  if (settings.sequential && !settings.profile.empty())
    throw std::invalid_argument(
        "--profile is for pipelines: leave out --sequential");
  if (settings.steps == 0 && !settings.profile.empty())
    throw std::invalid_argument("--profile needs at least one step");
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

bool chimera::isSpokesman() {
  std::optional<Job> job = findJob();
  return !job || job->rank == 0;
}

void chimera::giveWay() {
  if (!isSpokesman())
    std::this_thread::sleep_for(std::chrono::seconds(2));
}

int chimera::runCommand(const RunSettings &settings) {
  checkSettings(settings);
  std::optional<Job> job = findJob();
  // Only what trains on text has threads. The ranks of this process are not
  // known yet, so it may start again in vain; a pipe can be read only once.
  if (!settings.data.empty())
    letThreadsSleep(threadsOf(settings, job ? job->ranksOnHost : 1));
  std::string error;
  std::optional<program::ProgramT> program =
      program::readProgramFile(settings.program, error);
  if (!program)
    throw std::runtime_error(error);

  bool overMpi = settings.transport == kMpi ||
                 (settings.transport == kAuto && job && !settings.sequential);
#ifndef CHIMERA_HAVE_MPI
  if (overMpi)
    throw std::runtime_error("this chimera-run was built without MPI: install "
                             "it and build again, or run in one process");
#endif
  if (job && !overMpi && job->ranks > 1)
    throw std::invalid_argument(
        std::string(settings.sequential ? "--sequential"
                                        : "--transport in-process") +
        " needs one process, got " + std::to_string(job->ranks) + " from " +
        job->launcher);
  if (!overMpi && settings.progress == kOn)
    throw std::invalid_argument(
        "--progress on is for runs over MPI: within a process messages move "
        "without help, leave it out");
  if (!overMpi && settings.allReduce == kTransport)
    throw std::invalid_argument(
        "--all-reduce transport is for runs over MPI: within a process there "
        "is only the ordered one, leave it out");
  if (overMpi)
    checkRanks(*program, job ? job->ranks : 1);

  Workload load = makeWorkload(settings, *program);
  if (settings.sequential)
    return runSequentially(settings, *program, load);
  checkMessages(settings.program, *program);
  return runPipeline(settings, *program, load, job, overMpi);
}
