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

#include "runtime/calibrate/DeviceSpeed.h"
#include "runtime/data/ShardFolders.h"
#include "runtime/model/LearningRate.h"
#include "runtime/model/checkpoint/Folder.h"
#include "runtime/model/graph/GraphStage.h"
#include "runtime/model/tensors/Tensors.h"
#include "runtime/program/Layers.h"
#include "runtime/program/Output.h"
#include "runtime/program/Predictions.h"
#include "runtime/proof/ProvenFile.h"
#include "runtime/random/Mix.h"
#include "runtime/train/CheckpointedSteps.h"
#include "runtime/train/RunAsRank.h"
#include "runtime/train/RunSequential.h"
#include "runtime/watch/Report.h"
#include "tools/CheckSettings.h"
#include "tools/CommonOptions.h"
#include "tools/PassiveOpenMP.h"
#include "tools/Results.h"
#include "tools/RunFiles.h"
#include "tools/TrainingOptions.h"
#include "tools/Workload.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <filesystem>
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

/// If this host computes slowly in the model's activation type, prints how
/// slowly. Calls `takeThreads` before it measures, so that this thread computes
/// with as many threads as a rank.
void warnOfSlowType(const RunSettings &settings,
                    const program::ProgramT &program, const Workload &load,
                    const std::function<void()> &takeThreads) {
  const program::DataType type = program::typesOf(program).activations;
  if (load.kind != kModel || settings.device == kCuda || settings.quiet ||
      settings.steps == 0 || type != program::DataType::BFloat16)
    return;
  takeThreads();
  const std::string note = noteOfSlowType(
      type, relativeTimeOfType(
                program, [](const program::ProgramT &block, uint32_t stage) {
                  return makeGraphStage(block, stage);
                }));
  if (note.empty())
    return;
  std::printf("%s\n", note.c_str());
  std::fflush(stdout);
}

/// If the run trains a model and does not save it, prints that.
void warnOfLostWeights(const RunSettings &settings, const Workload &load) {
  if (load.kind != kModel || settings.quiet || settings.steps == 0 ||
      !settings.save.empty() || !settings.checkpoint.empty())
    return;
  std::printf("the weights are not kept: --save FILE writes them\n");
  std::fflush(stdout);
}

/// If the last finite weights of an earlier run would be replaced, prints that.
void warnOfOldWeights(const RunSettings &settings) {
  const std::string file = lastFiniteFile(settings.save);
  std::error_code ignored;
  if (settings.quiet || file.empty() ||
      !std::filesystem::exists(file, ignored) ||
      program::areSameFile(file, settings.load))
    return;
  std::printf(
      "%s is of an earlier run: this run replaces it if it diverges%s\n",
      file.c_str(), settings.checkpoint.empty() ? " or a signal ends it" : "");
  std::fflush(stdout);
}

/// Prints where the run begins, if --resume is given.
void reportResume(const RunSettings &settings, const Workload &load) {
  if (settings.resume.empty())
    return;
  // A wrong name of the folder has the same effect, so --quiet does not hide
  // this line.
  if (load.resumedFrom.empty())
    std::printf("no checkpoint in %s yet: starts at the first step\n",
                settings.resume.c_str());
  else if (!settings.quiet)
    std::printf("resumes from %s, after %s\n", load.resumedFrom.c_str(),
                program::countWithNoun(load.firstStep, "step").c_str());
  if (!load.resumeNote.empty())
    std::printf("%s\n", load.resumeNote.c_str());
  std::fflush(stdout);
}

/// Prints the memory that checkpoints need.
void reportCheckpoints(const RunSettings &settings,
                       const program::ProgramT &program, const Workload &load) {
  if (settings.checkpoint.empty() || settings.quiet || load.kind != kModel ||
      settings.sequential)
    return;
  std::printf(
      "checkpoints: a rank needs memory for a copy of its state, at most "
      "%s\n",
      sizeText(largestCheckpointCopy(program)).c_str());
  std::fflush(stdout);
}

/// Prints the memory of the samples that ranks read ahead, if it is 10 MB or
/// more.
void reportReadAhead(const RunSettings &settings, const TrainingRun &run) {
  const std::vector<uint64_t> bytes = readAheadBytesOf(run);
  const uint64_t largest = *std::ranges::max_element(bytes);
  if (settings.quiet || settings.sequential || largest < 10'000'000)
    return;
  std::printf("a rank reads at most %s of samples ahead\n",
              sizeText(largest).c_str());
  std::fflush(stdout);
}

/// If evaluations leave out held-out samples, prints how many they take.
void reportEvaluations(const RunSettings &settings, const Workload &load) {
  if (settings.quiet || !load.heldOut)
    return;
  const uint64_t all =
      (load.validation ? *load.validation : *load.dataset).heldOutCount();
  if (load.heldOutSamples >= all)
    return;
  std::printf("evaluates %llu of %llu held-out samples (--evaluate-samples)\n",
              static_cast<unsigned long long>(load.heldOutSamples),
              static_cast<unsigned long long>(all));
  std::fflush(stdout);
}

/// If the run is too short for its schedule of the learning rate, prints that.
void warnOfShortSchedule(const RunSettings &settings,
                         const program::ProgramT &program,
                         const Workload &load) {
  const std::string note =
      noteOfShortSchedule(*program.optimizer, settings.steps);
  if (load.kind != kModel || settings.quiet || note.empty())
    return;
  std::printf("%s\n", note.c_str());
  std::fflush(stdout);
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
  char time[40];
  std::snprintf(time, sizeof time, "%g s", seconds);
  if (signal == SIGINT)
    writeReport(std::string("SIGINT: within ") + time +
                ", the run ends after this step and " +
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
  const std::optional<Job> started = job ? job->job : std::nullopt;
  Signals signals(graceAfterSignal(settings, started, [&](int signal) {
    reportGrace(settings, signal, graceSeconds(settings, started));
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
    // A rank takes this folder later. If it cannot, find that out now: the
    // error of a rank has a report on all ranks, which would not help.
    if (!settings.checkpoint.empty())
      CheckpointFolder(settings.checkpoint, load.firstStep, load.resumedFrom);
    results = std::make_unique<Results>(
        settings, program, load, conditionsOf(settings, load, job, share));
    if (!settings.quiet && !load.conversionMessage.empty())
      std::printf("--load: %s\n", load.conversionMessage.c_str());
    if (!settings.sequential)
      printRunSummary(settings, program, load,
                      describeRanks(settings, program, job, share), share);
    if (load.drawsWeights && !settings.quiet)
      std::printf(
          "the weights are drawn at random: --load starts from others\n");
    if (!load.noEvaluationReason.empty() && !settings.quiet)
      std::printf("%s\n", load.noEvaluationReason.c_str());
    reportResume(settings, load);
    reportCheckpoints(settings, program, load);
    reportReadAhead(settings, run);
    reportEvaluations(settings, load);
    warnOfLostWeights(settings, load);
    warnOfOldWeights(settings);
    warnOfShortSchedule(settings, program, load);
    warnOfSlowType(settings, program, load, [&] {
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
  // Only runs with --data compute with several threads. The number of ranks in
  // this process is known only after the program is read, so this restart may
  // be unnecessary. It must come before the program is read, because the
  // program may come from a pipe, which can be read only once.
  if (!settings.data.empty())
    reexecWithPassiveOpenMP(shareCores(findCores(), job ? job->ranksOnHost : 1,
                                       settings.threads, progressMode(settings))
                                .computing);
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
  // LibTorch must not start threads before `Signals` blocks SIGTERM for those
  // that begin later: a thread that does not block it would end the process.
  setThreads(1);
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
