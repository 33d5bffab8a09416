//===- RunCommand.cpp - Command of chimera-run ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes a run from the settings: the stages, the data, the ranks, and the
// callbacks for steps and results.
//
//===----------------------------------------------------------------------===//

#include "tools/Commands.h"

#include "runtime/data/ShardFolders.h"
#include "runtime/model/checkpoint/Folder.h"
#include "runtime/model/tensors/Tensors.h"
#include "runtime/program/Layers.h"
#include "runtime/program/Predictions.h"
#include "runtime/proof/ProvenFile.h"
#include "runtime/random/Mix.h"
#include "runtime/train/CheckpointedSteps.h"
#include "runtime/train/RunAsRank.h"
#include "runtime/train/RunSequential.h"
#include "runtime/watch/Report.h"
#include "tools/CheckSettings.h"
#include "tools/CommonOptions.h"
#include "tools/Results.h"
#include "tools/RunFiles.h"
#include "tools/StartNotices.h"
#include "tools/TrainingOptions.h"
#include "tools/Workload.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <set>

using namespace chimera;
using namespace chimera::runtime;

namespace {
/// The settings that must be equal on all ranks of a job.
std::vector<AgreedValue> sharedSettings(const RunSettings &settings,
                                        const Workload &load) {
  auto digest = [](const std::string &text) {
    return digestOf(std::as_bytes(std::span(text)));
  };
  return {
      {"--stages", digest(load.kind)},
      {"--device", digest(settings.device)},
      {"--all-reduce", digest(settings.allReduce)},
      {"--data and --hold-out", load.dataset ? load.dataset->digest() : 0},
      {"--validation", load.validation ? load.validation->digest() : 0},
      {"--last-batch", digest(settings.lastBatch)},
      {"--trust-data", settings.trustData},
      // If ranks found different checkpoints, their numbers of steps differ
      // too. So compare this first.
      {"checkpoint of --resume", digest(load.resumedFrom)},
      {load.resumedFrom.empty() ? "--load" : "content of the checkpoint",
       load.valuesDigest},
      {"--checkpoint", digest(settings.checkpoint)},
      {"--names", load.tensorNames.digest()},
      // Compare only whether native code is used, and not its folder: the
      // program determines the code, and each host may have it in another
      // folder.
      {"--allow-native-code", load.native ? 1u : 0u},
      {"--mask and --mask-rate",
       settings.givenOptions.contains("--mask")
           ? mix({1, settings.mask, std::bit_cast<uint64_t>(settings.maskRate)})
           : 0},
      {"--pairs",
       settings.pairs.empty()
           ? 0
           : mix({1, settings.pairs[0], settings.pairs[1], settings.pairs[2]})},
      {"--within-documents", settings.withinDocuments},
      {"--document-end", settings.givenOptions.contains("--document-end")
                             ? mix({1, settings.documentEnd})
                             : 0},
      // Only the root writes these files. But all ranks must have the same file
      // names, because users do not know which rank is the root.
      {"--save", digest(settings.save)},
      {"--save-gradients", digest(settings.saveGradients)},
      {"--log", digest(settings.log)},
      {"--tensorboard", digest(settings.tensorboard)},
      {"--profile", digest(settings.profile)},
      {"--trace", digest(settings.trace)},
      {"--evaluate-samples", settings.evaluateSamples}};
}

/// Makes a run from the settings. The run refers to the arguments, so they must
/// outlive it.
TrainingRun makeRun(const RunSettings &settings,
                    const program::ProgramT &program, Workload &load,
                    Signals &signals) {
  TrainingRun run{
      .program = program, .stages = load.stages, .data = *load.data};
  run.steps = settings.steps;
  run.timeout = timeoutOf(settings);
  run.signals = &signals;
  // Gathering is collective, so every rank must know what will be gathered.
  run.firstStep = load.firstStep;
  run.firstUpdate = load.firstUpdate;
  if (!settings.checkpoint.empty())
    run.checkpoints =
        CheckpointSettings{.folder = settings.checkpoint,
                           .every = settings.checkpointEvery,
                           .keep = settings.keep,
                           .resumedFrom = load.resumedFrom,
                           .dataDigest = digestOfData(settings, load),
                           .names = &load.tensorNames};
  run.gatherWeights = !settings.save.empty();
  run.skipNonFinite = settings.skipNonFinite;
  run.keepFinite =
      run.gatherWeights || run.checkpoints || run.skipNonFinite > 0;
  run.digestWeights = load.kind != kSynthetic;
  run.evaluation = {.data = load.heldOut.get(),
                    .passes = load.evaluationPasses,
                    .every = settings.evaluateEvery,
                    .hasAccuracy = load.heldOut &&
                                   program::predictedField(*program.model)};
  run.gatherGradients = !settings.saveGradients.empty();
  run.checkReplicas = settings.checkReplicas;
  run.profile = !settings.profile.empty();
  run.traceSteps = settings.trace.empty() ? 0 : settings.traceSteps;
  run.readAhead = load.dataset ? settings.readAhead : 0;
  run.meter = load.memoryMeter;
  run.accelerator = load.accelerator.get();
  run.warmUpRuns = load.warmUpRuns;
  run.transportAllReduce = settings.allReduce == kTransport;
  return run;
}

/// The options for a rank's threads. Only stages that compute with tensors use
/// more than one thread.
HostOptions hostOptions(const RunSettings &settings, const Workload &load) {
  if (load.kind != kModel)
    return {.threads = 1};
  return {.threads = settings.threads, .setThreads = [](uint32_t threads) {
            setThreads(static_cast<int>(threads));
          }};
}

/// A description of where the ranks run, for the output: "4 processes over
/// MPI".
std::string describeRanks(const RunSettings &settings,
                          const program::ProgramT &program,
                          const std::optional<JobOptions> &job,
                          const HostResources &share) {
  const uint32_t ranks = program::rankCount(program);
  const std::string threads = program::countWithNoun(ranks, "thread"),
                    processes = program::countWithNoun(ranks, "process");
  if (settings.device == kCuda)
    return (job ? processes : threads) + " on GPUs";
  if (job && job->transport == JobTransport::Tcp)
    return processes + " over TCP";
  if (job)
    return processes + " over MPI" +
           (share.threads.progress ? " with a progress thread each" : "");
  return settings.device == kSimulated
             ? program::countWithNoun(ranks, "simulated device")
             : threads + " of this process";
}

/// The number of cores that all ranks on this host share. In a job, these are
/// all cores of the host, because a launcher may bind each process to a few of
/// them.
uint32_t coresForRanks(const std::optional<JobOptions> &job) {
  const Cores cores = findCores();
  return job ? cores.host : cores.usable;
}

/// The hardware that computes on this host, for a profile. The number of cores
/// is left out if ranks sleep or compute on a GPU.
RunConditions conditionsOf(const RunSettings &settings, const Workload &load,
                           const std::optional<JobOptions> &job,
                           const HostResources &share) {
  RunConditions conditions{.stages = load.kind,
                           .device = settings.device,
                           .threads = share.threads.computing};
  if (settings.device != kCuda && load.kind != kSynthetic)
    conditions.coresPerRank =
        static_cast<double>(coresForRanks(job)) / share.ranks;
  return conditions;
}

/// The texts of a run: none, one, or two with --validation.
std::set<const TextData *> textsOf(const Workload &load) {
  std::set<const TextData *> texts = {load.text, load.heldOutText};
  texts.erase(nullptr);
  return texts;
}

/// Checks part `part` of `parts` equal parts of all samples. Returns an error
/// message, or an empty string.
std::string checkSamples(const Workload &load, uint32_t threads, uint32_t part,
                         uint32_t parts) {
  for (const Dataset *data :
       {std::as_const(load.dataset), std::as_const(load.validation).get()})
    if (std::string fault = data ? data->check(threads, part, parts) : "";
        !fault.empty())
      return fault;
  return {};
}

/// If there are 2^29 tokens or more, prints that all tokens are being checked:
/// the check then takes a second or more. Only the root prints this.
void announceCheck(const RunSettings &settings,
                   const program::ProgramT &program, const Workload &load,
                   const std::optional<JobOptions> &job) {
  int64_t tokens = 0;
  for (const TextData *text : textsOf(load))
    tokens += text->trainingTokens() + text->heldOutTokens();
  constexpr int64_t kMany = int64_t{1} << 29;
  if (settings.quiet || tokens < kMany ||
      (job && job->job && job->job->rank != rootOf(program)))
    return;
  std::printf("checking all %lld tokens before the first step (--trust-data "
              "skips this)\n",
              static_cast<long long>(tokens));
  std::fflush(stdout);
}

/// After SIGINT, prints how the run will end. SIGTERM prints nothing: a
/// launcher sends it to all of its ranks, and nobody would read the message in
/// time.
void reportGrace(const RunSettings &settings, int signal, double seconds) {
  if (signal != SIGINT)
    return;
  char begin[80];
  std::snprintf(begin, sizeof begin,
                "SIGINT: within %g s, the run ends after this step and ",
                seconds);
  writeReport(begin +
              (settings.checkpoint.empty()
                   ? "saves the weights to " + fileAfterSignal(settings)
                   : "writes a checkpoint to " + settings.checkpoint) +
              "; a second SIGINT ends it at once; " + kHowToStop + "\n");
}

/// Trains, and returns the process's exit status.
int train(const RunSettings &settings, const program::ProgramT &program,
          Workload &load, const std::optional<JobOptions> &job) {
  const bool mustCheck = load.dataset && !settings.trustData;
  if (mustCheck)
    announceCheck(settings, program, load, job);
  if (mustCheck && !job)
    if (std::string fault = checkSamples(load, findCores().usable, 0, 1);
        !fault.empty())
      throw std::runtime_error(fault);
  const std::optional<Job> launched = job ? job->job : std::nullopt;
  Signals signals(graceAfterSignal(settings, launched, [&](int signal) {
    reportGrace(settings, signal, graceSeconds(settings, launched));
  }));
  TrainingRun run = makeRun(settings, program, load, signals);
  std::atomic<int> stoppedBy = 0;
  run.onStopped = [&](int signal) { stoppedBy.store(signal); };
  HostOptions use = hostOptions(settings, load);
  // Only the root makes this object, because it opens the log and prints. Any
  // rank of a job may be the root.
  std::unique_ptr<Results> results;
  if (mustCheck && job)
    run.dataError = [&](uint32_t part, uint32_t parts) {
      const Cores cores = findCores();
      return checkSamples(
          load, std::clamp(cores.host / parts, 1u, cores.usable), part, parts);
    };
  use.onReady = [&](const HostResources &share) {
    checkDiskSpace(settings, program, load.tensorNames);
    // A rank takes this folder later. If it cannot, say so here: its error
    // would look like the failure of a rank, and the log would already be open.
    if (!settings.checkpoint.empty())
      CheckpointFolder(settings.checkpoint, load.firstStep, load.resumedFrom);
    results = std::make_unique<Results>(
        settings, program, load, conditionsOf(settings, load, job, share));
    printStart(settings, run, load,
               describeRanks(settings, program, job, share), share, [&] {
                 if (use.setThreads)
                   use.setThreads(share.threads.computing);
               });
  };
  run.onStep = [&](const StepEvent &event) { results->onStep(event); };
  run.onCheckpoint = [&](const CheckpointOutcome &outcome) {
    results->onCheckpoint(outcome);
  };
  run.evaluation.onResult = [&](uint64_t step, const EvaluationResult &result) {
    results->onEvaluation(step, result);
  };
  run.onResult = [&](const RunResult &result) {
    if (settings.checkReplicas && !settings.quiet && !result.divergence)
      std::printf("all replicas are bit-identical\n");
    if (settings.sequential)
      return results->finish(result, {});
    results->finish(result, summarize(program, result, coresForRanks(job)));
  };

  run.onEnd = [&] { results->completeLog(); };

  if (settings.sequential) {
    bool isWhole = load.wholeModel != nullptr;
    if (isWhole)
      run.stages = load.wholeModel;
    runSequential(run, use,
                  isWhole ? 1 : static_cast<uint32_t>(program.stages.size()));
  } else if (job) {
    run.programOptions = agreedTrainingOptions(settings);
    run.agreedValues = sharedSettings(settings, load);
    runAsRank(run, use, *job);
  } else if (settings.device == kSimulated) {
    runOnHost(run, use, settings.deviceSeed);
  } else {
    runOnHost(run, use);
  }
  const int failed = results ? results->exitStatus() : 0;
  return failed == 0 && stoppedBy > 0 ? 128 + stoppedBy : failed;
}

/// The job of which this process is a rank. None if all ranks are threads of
/// this process. Also none if a launcher started only this process, like `srun
/// --pty bash`, and the user did not choose a transport between processes.
std::optional<Job> jobOf(const RunSettings &settings) {
  std::optional<Job> job = findJob();
  const bool isAlone = job && job->ranks == 1 && settings.transport != kMpi &&
                       settings.transport != kTcp;
  return isAlone ? std::nullopt : job;
}
} // namespace

int chimera::runCommand(const RunSettings &given) {
  RunSettings settings = given;
  settings.data = filesOfFolders(given.data);
  settings.validation = filesOfFolders(given.validation);
  checkSettings(settings);
  std::optional<Job> job = jobOf(settings);
  if (!settings.calibrate.empty()) {
    calibrateMachine(settings, job);
    return 0;
  }
  if (!job)
    checkFiles(settings);
  std::string error;
  std::optional<program::ProgramT> program =
      program::readProgramFile(settings.program, error);
  if (!program)
    throw std::runtime_error(error);

  applyTrainingOptions(settings, *program);
  if (settings.generate > 0) {
    if (job)
      throw std::invalid_argument("--generate needs one process: run it "
                                  "without a launcher");
    setThreads(static_cast<int>(settings.threads > 0 ? settings.threads
                                                     : findCores().usable));
    generateText(settings, *program);
    return 0;
  }

  // In a job, only the root checks the files, because only the root writes
  // them, on its own host.
  if (job && job->rank == rootOf(*program))
    checkFiles(settings);
  std::optional<JobTransport> transport = chooseTransport(settings, job);
  checkLaunch(settings, job, transport);
  std::optional<JobOptions> jobOptions;
  if (transport) {
    jobOptions = {.transport = *transport,
                  .job = job,
                  .progress = progressMode(settings),
                  .onFailure = reportFailure};
    checkJob(*program, *jobOptions);
  }
  Workload load = makeWorkload(settings, *program);
  RunSettings settled = settings;
  settled.steps = trainingSteps(settings, load);
  if (load.firstStep > settled.steps)
    throw std::invalid_argument(
        "the checkpoint '" + load.resumedFrom + "' is after " +
        program::countWithNoun(load.firstStep, "step") +
        ", and the training has only " + std::to_string(settled.steps) +
        ": give more " + (settings.epochs > 0 ? "--epochs" : "--steps"));
  auto prove = settings.device == kCuda ? program::proveForStreamPerDevice
                                        : program::proveForRendezvous;
  if (!settings.sequential && !prove(*program, settings.program, error))
    throw std::runtime_error(error);
  return train(settled, *program, load, jobOptions);
}
