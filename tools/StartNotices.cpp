//===- StartNotices.cpp - What a run says before its first step -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/StartNotices.h"

#include "runtime/calibrate/DeviceSpeed.h"
#include "runtime/model/LearningRate.h"
#include "runtime/model/graph/GraphStage.h"
#include "runtime/program/Layers.h"
#include "runtime/program/Output.h"
#include "runtime/train/CheckpointedSteps.h"
#include "tools/RunFiles.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <string_view>

using namespace chimera;
using namespace chimera::runtime;

// Each function returns a notice, or an empty text if there is nothing to say.
namespace {
/// Whether the costs of stages are times. If they are not, the program has no
/// predicted time of a step.
bool hasTimes(const program::ProgramT &program) {
  const std::array<std::string_view, 4> times = {"s", "ms", "us", "ns"};
  return std::ranges::find(times, program.time_unit) != times.end();
}

/// The program's name and schedule: "train (1f1b)" or "mine (given order)". If
/// the name is the schedule's name, only "1f1b".
std::string titleOf(const program::ProgramT &program) {
  if (program.name == program.schedule)
    return program.name;
  return program.name + " (" +
         (program.schedule == "given" ? "given order" : program.schedule) + ")";
}

/// If ranks share cores, a sentence about how this changes the time of a step;
/// else empty.
std::string noteOfSharedCores(const RunSettings &settings,
                              const program::ProgramT &program,
                              const Workload &load,
                              const HostResources &share) {
  const uint32_t cores = findCores().host;
  // In these cases ranks do not slow each other down: synthetic stages only
  // sleep, stages on GPUs hardly need a core, and simulated devices share a
  // thread.
  if (share.ranks <= cores || load.kind == kSynthetic ||
      settings.device != kHost)
    return {};
  const std::string text = program::countWithNoun(share.ranks, "rank") +
                           " share " + program::countWithNoun(cores, "core");
  if (!hasTimes(program))
    return text + ", so a step takes longer than with a core for each rank";
  return text +
         ": steps take longer than predicted, unless chimera.machine "
         "has node_devices(" +
         std::to_string(share.ranks) + ") node_cores(" +
         std::to_string(std::max(cores / share.threads.computing, 1u)) + ")";
}

/// The pipeline, its schedule and its ranks, in one line.
std::string noteOfPipeline(const program::ProgramT &program,
                           const Workload &load, const std::string &where,
                           const HostResources &share) {
  std::string note = titleOf(program) + ": " +
                     program::countWithNoun(program.workers.size(), "worker") +
                     " x " +
                     program::countWithNoun(program.data_parallel, "copy") +
                     ", " + where + ", " + load.kind + " stages";
  if (load.kind == kModel)
    note +=
        ", " +
        program::countWithNoun(share.threads.computing, "computing thread") +
        " per rank";
  return note;
}

/// The notice that says after which step a run with --resume begins.
std::string noteOfResume(const RunSettings &settings, const Workload &load) {
  return load.resumedFrom.empty()
             ? "no checkpoint in " + settings.resume +
                   " yet: starts at the first step"
             : "resumes from " + load.resumedFrom + ", after " +
                   program::countWithNoun(load.firstStep, "step");
}

/// The notice of the memory that checkpoints need.
std::string noteOfCheckpoints(const RunSettings &settings,
                              const program::ProgramT &program) {
  return settings.checkpoint.empty() || settings.sequential
             ? ""
             : "checkpoints: a rank needs memory for a copy of its state, at "
               "most " +
                   sizeText(largestCheckpointCopy(program));
}

/// The memory of the samples that ranks read ahead, if it is 10 MB or more.
std::string noteOfReadAhead(const RunSettings &settings,
                            const TrainingRun &run) {
  const uint64_t largest = std::ranges::max(readAheadBytesOf(run));
  return settings.sequential || largest < 10'000'000
             ? ""
             : "a rank reads at most " + sizeText(largest) +
                   " of samples ahead";
}

/// Says that the run trains a model and does not save it.
std::string noteOfLostWeights(const RunSettings &settings) {
  return settings.steps == 0 || !settings.save.empty() ||
                 !settings.checkpoint.empty()
             ? ""
             : "the weights are not kept: --save FILE writes them";
}

/// Says that the run may replace the last finite weights of an earlier run.
std::string noteOfOldWeights(const RunSettings &settings) {
  const std::string file = lastFiniteFile(settings.save);
  std::error_code ignored;
  if (file.empty() || !std::filesystem::exists(file, ignored) ||
      program::areSameFile(file, settings.load))
    return {};
  return file + " is of an earlier run: this run replaces it if it diverges" +
         (settings.checkpoint.empty() ? " or a signal ends it" : "");
}

/// Says how slowly this host computes in the model's activation type.
std::string noteOfTypeSpeed(const RunSettings &settings,
                            const program::ProgramT &program,
                            const std::function<void()> &takeThreads) {
  const program::DataType type = program::typesOf(program).activations;
  if (settings.device == kCuda || settings.steps == 0 ||
      type != program::DataType::BFloat16)
    return {};
  takeThreads();
  return noteOfSlowType(
      type, relativeTimeOfType(
                program, [](const program::ProgramT &block, uint32_t stage) {
                  return makeGraphStage(block, stage);
                }));
}
} // namespace

std::string chimera::sizeText(uint64_t bytes) {
  const auto [unit, name] = bytes < 1'000'000       ? std::pair(1e3, "kB")
                            : bytes < 1'000'000'000 ? std::pair(1e6, "MB")
                                                    : std::pair(1e9, "GB");
  char text[40];
  std::snprintf(text, sizeof text, "%.1f %s", static_cast<double>(bytes) / unit,
                name);
  return text;
}

void chimera::printStart(const RunSettings &settings, const TrainingRun &run,
                         const Workload &load, const std::string &where,
                         const HostResources &share,
                         const std::function<void()> &takeThreads) {
  const program::ProgramT &program = run.program;
  const auto print = [](const std::string &note) {
    if (note.empty())
      return;
    std::printf("%s\n", note.c_str());
    std::fflush(stdout);
  };
  const bool isQuiet = settings.quiet;
  if (!isQuiet) {
    if (!load.conversionMessage.empty())
      print("--load: " + load.conversionMessage);
    if (!settings.sequential) {
      print(noteOfPipeline(program, load, where, share));
      if (!load.noGraphsReason.empty())
        print("no CUDA graphs: " + load.noGraphsReason);
      print(noteOfSharedCores(settings, program, load, share));
    }
    if (load.drawsWeights)
      print("the weights are drawn at random: --load starts from others");
  }
  // If the name of the folder is wrong, a run starts at its first step. So
  // --quiet does not hide that.
  if (!settings.resume.empty() && (!isQuiet || load.resumedFrom.empty()))
    print(noteOfResume(settings, load));
  print(load.resumeNote);
  if (isQuiet || load.kind != kModel)
    return;
  print(noteOfCheckpoints(settings, program));
  print(noteOfReadAhead(settings, run));
  print(load.evaluationNote);
  print(noteOfLostWeights(settings));
  print(noteOfOldWeights(settings));
  print(noteOfShortSchedule(*program.optimizer, settings.steps));
  print(noteOfTypeSpeed(settings, program, takeThreads));
}
