//===- CheckSettings.cpp - Checks of option combinations ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/CheckSettings.h"

#include "runtime/program/Program.h"
#include "runtime/system/Cores.h"
#include "runtime/train/RunAsRank.h"

#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;

/// Refuses options that have no effect with --generate. If --generate is not
/// given, refuses the options that need it.
static void checkGenerate(const RunSettings &settings) {
  const std::set<std::string> commonOptions = {"--load", "--names", "--tokens",
                                               "--trust-data", "--threads"};
  const std::set<std::string> ownOptions = {"--generate", "--prompt",
                                            "--temperature", "--generate-seed"};
  const bool generates = settings.givenOptions.contains("--generate");
  for (const std::string &option : settings.givenOptions) {
    if (!option.starts_with("--") || option == "--PROGRAM" ||
        commonOptions.contains(option) ||
        ownOptions.contains(option) == generates)
      continue;
    throw std::invalid_argument(
        generates ? option + " is for training: leave it out with --generate"
                  : option + " is for --generate: give that too");
  }
  if (generates && settings.load.empty())
    throw std::invalid_argument("--generate needs weights: give --load FILE");
  if (generates && settings.prompt.empty())
    throw std::invalid_argument("--generate needs a text to continue: give "
                                "--prompt FILE");
}

/// Refuses options that have no effect with --calibrate. If --calibrate is not
/// given, refuses the options that need it.
static void checkCalibrate(const RunSettings &settings) {
  const std::set<std::string> commonOptions = {
      "--threads", "--transport",  "--progress", "--timeout", "--quiet",
      "--device",  "--all-reduce", "--stages",   "--unit-ns"};
  const bool calibrates = settings.givenOptions.contains("--calibrate");
  if (!calibrates) {
    if (settings.givenOptions.contains("--ranks"))
      throw std::invalid_argument("--ranks is for --calibrate: leave it out, "
                                  "a program has its number of ranks");
    return;
  }
  if (!settings.program.empty())
    throw std::invalid_argument("--calibrate measures without a program: leave "
                                "out '" +
                                settings.program + "'");
  for (const std::string &option : settings.givenOptions)
    if (option.starts_with("--") && option != "--calibrate" &&
        option != "--ranks" && !commonOptions.contains(option))
      throw std::invalid_argument(
          option + " is for running a program: leave it out with --calibrate");
  if (settings.device == kSimulated)
    throw std::invalid_argument("--calibrate measures times, and simulated "
                                "devices have none: leave out --device");
  const bool isSynthetic = settings.stages == kSynthetic;
  if (!isSynthetic && settings.stages != kAuto && settings.stages != kModel)
    throw std::invalid_argument(
        "--calibrate measures model or synthetic stages: leave out "
        "--stages " +
        settings.stages);
  if (!isSynthetic && settings.givenOptions.contains("--unit-ns"))
    throw std::invalid_argument(
        "--unit-ns is for synthetic stages: give --stages synthetic too");
  if (isSynthetic && settings.unitNanoseconds == 0)
    throw std::invalid_argument(
        "--calibrate measures the speed of layers, and synthetic layers that "
        "take no time have none: give --unit-ns too");
}

/// Refuses `option`, which writes measured times to `file`, if the run does not
/// measure times.
static void checkTimes(const RunSettings &settings, const std::string &option,
                       const std::string &file) {
  if (file.empty())
    return;
  if (settings.sequential)
    throw std::invalid_argument(option +
                                " is for pipelines: leave out --sequential");
  if (settings.device == kSimulated)
    throw std::invalid_argument(option +
                                " needs real durations: leave it out with "
                                "--device simulated");
  if (settings.steps == 0)
    throw std::invalid_argument(option + " needs at least one step");
}

/// Refuses `file`, which `option` writes, if it is named like one of PyTorch's
/// own files: torch.load cannot read what is written.
static void checkNameOfWeights(const std::string &option,
                               const std::string &file) {
  for (const char *suffix : {".pt", ".pth", ".bin"})
    if (file.ends_with(suffix))
      throw std::invalid_argument(
          option +
          " writes a safetensors file, which torch.load cannot read: "
          "expected a name such as '" +
          file.substr(0, file.rfind('.')) + ".safetensors', got '" + file +
          "'");
}

void chimera::checkSettings(const RunSettings &settings) {
  checkCalibrate(settings);
  checkGenerate(settings);
  if (!settings.names.empty() && settings.load.empty() &&
      settings.save.empty() && settings.saveGradients.empty() &&
      settings.checkpoint.empty() && settings.resume.empty())
    throw std::invalid_argument("--names is for files of weights: give --load, "
                                "--save, --save-gradients, --checkpoint or "
                                "--resume too");
  for (const char *option : {"--checkpoint-every", "--keep"})
    if (settings.checkpoint.empty() && settings.givenOptions.contains(option))
      throw std::invalid_argument(std::string(option) +
                                  " is for --checkpoint FOLDER: give that too");
  if (!settings.checkpoint.empty() && settings.device == kSimulated)
    throw std::invalid_argument("runs on simulated devices write no "
                                "checkpoints: leave out --checkpoint");
  if (settings.epochs > 0 && settings.givenOptions.contains("--steps"))
    throw std::invalid_argument("--epochs sets the number of steps: leave out "
                                "--steps");
  if (!settings.validation.empty() &&
      settings.givenOptions.contains("--hold-out"))
    throw std::invalid_argument(
        "--validation gives the held-out samples: leave "
        "out --hold-out");
  if (!settings.validation.empty() && settings.evaluateSamples == 0)
    throw std::invalid_argument("--validation is for evaluations: leave out "
                                "--evaluate-samples 0");
  checkNameOfWeights("--save", settings.save);
  checkNameOfWeights("--save-gradients", settings.saveGradients);
  if (settings.grace && settings.save.empty() && settings.checkpoint.empty())
    throw std::invalid_argument("--grace is time to save the weights: give "
                                "--save or --checkpoint too");
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
  if (settings.givenOptions.contains("--read-ahead") &&
      (settings.sequential || settings.device == kSimulated))
    throw std::invalid_argument(
        "--read-ahead is for pipelines of real devices: leave it out");
  for (const auto &[option, file] : {std::pair("--profile", &settings.profile),
                                     {"--trace", &settings.trace}})
    checkTimes(settings, option, *file);
  if (settings.trace.empty() && settings.givenOptions.contains("--trace-steps"))
    throw std::invalid_argument("--trace-steps is for --trace: give that too");
  bool isSimulated = settings.device == kSimulated;
  if (isSimulated && settings.sequential)
    throw std::invalid_argument(
        "--device simulated is for pipelines: leave out "
        "--sequential");
  if (isSimulated && hasProcesses)
    throw std::invalid_argument("--device simulated runs all ranks in one "
                                "process: leave out --transport " +
                                settings.transport);
  if (settings.device == kCuda && settings.sequential)
    throw std::invalid_argument("--device cuda is for pipelines: leave out "
                                "--sequential");
  if (settings.device != kCuda && settings.cudaGraphs)
    throw std::invalid_argument(
        "--cuda-graphs is for --device cuda: give that too");
  if (!isSimulated && settings.givenOptions.count("--device-seed"))
    throw std::invalid_argument(
        "--device-seed is for --device simulated: give that too");
  uint32_t cores = findCores().host;
  if (settings.threads > cores * kMaxThreadsOnCore)
    throw std::invalid_argument("--threads: expected at most " +
                                std::to_string(cores * kMaxThreadsOnCore) +
                                ", " + std::to_string(kMaxThreadsOnCore) +
                                " for each of " +
                                program::countWithNoun(cores, "core") +
                                ", got " + std::to_string(settings.threads));
}

std::optional<JobTransport>
chimera::chooseTransport(const RunSettings &settings,
                         const std::optional<Job> &job) {
  if (settings.transport == kMpi)
    return JobTransport::Mpi;
  if (settings.transport == kTcp)
    return JobTransport::Tcp;
  if (settings.transport != kAuto || !job || settings.sequential ||
      settings.device == kSimulated)
    return std::nullopt;
  return transportOf(*job);
}

void chimera::checkLaunch(const RunSettings &settings,
                          const std::optional<Job> &job,
                          const std::optional<JobTransport> &transport) {
  if (settings.ranks > 0 && transport)
    throw std::invalid_argument(
        "leave out --ranks: the launcher started one process for each rank");
  if (!settings.calibrate.empty() && settings.ranks == 0 && !transport)
    throw std::invalid_argument(
        "--calibrate needs ranks: give --ranks N for threads of this process, "
        "or start it under mpirun, srun or torchrun");
  if (!settings.calibrate.empty() && job && transport && job->ranks < 2)
    throw std::invalid_argument(
        "--calibrate measures messages between "
        "ranks: expected at least 2 ranks, got 1 from " +
        std::string(job->launcher));
  if (job && !transport && job->ranks > 1)
    throw std::invalid_argument(std::string(settings.sequential ? "--sequential"
                                            : settings.device == kSimulated
                                                ? "--device simulated"
                                                : "--transport in-process") +
                                " needs one process, got " +
                                std::to_string(job->ranks) + " from " +
                                job->launcher);
  if (settings.device == kCuda && settings.progress == kOn)
    throw std::invalid_argument(
        "--progress on is for hosts: leave it out, GPUs "
        "move messages while they compute");
  if (transport != JobTransport::Mpi && settings.progress == kOn)
    throw std::invalid_argument(
        "--progress on is for runs over MPI: leave it out, other transports "
        "move messages without it");
  if (transport != JobTransport::Mpi && settings.device != kCuda &&
      settings.allReduce == kTransport)
    throw std::invalid_argument(
        "--all-reduce transport is for runs over MPI and on GPUs: leave it "
        "out, other runs have only the ordered one");
}
