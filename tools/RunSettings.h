//===- RunSettings.h - The options of chimera-run ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_RUNSETTINGS_H
#define CHIMERA_TOOLS_RUNSETTINGS_H

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace chimera {

/// Values of options.
inline constexpr const char *kAuto = "auto", *kModel = "model",
                            *kExact = "exact", *kSynthetic = "synthetic",
                            *kInProcess = "in-process", *kMpi = "mpi",
                            *kTcp = "tcp", *kOn = "on", *kOff = "off",
                            *kOrdered = "ordered", *kTransport = "transport",
                            *kBytes = "bytes", *kUInt16 = "uint16",
                            *kUInt32 = "uint32", *kHost = "host",
                            *kCuda = "cuda", *kSimulated = "simulated",
                            *kDrop = "drop", *kFill = "fill";

/// The values of --stages, --tokens, --transport, --device, --progress,
/// --all-reduce and --last-batch.
inline std::vector<std::string> stageKinds() {
  return {kAuto, kModel, kExact, kSynthetic};
}
inline std::vector<std::string> tokenKinds() {
  return {kAuto, kBytes, kUInt16, kUInt32};
}
inline std::vector<std::string> transportKinds() {
  return {kAuto, kInProcess, kMpi, kTcp};
}
inline std::vector<std::string> deviceKinds() {
  return {kHost, kCuda, kSimulated};
}
inline std::vector<std::string> progressKinds() { return {kAuto, kOn, kOff}; }
inline std::vector<std::string> allReduceKinds() {
  return {kOrdered, kTransport};
}
inline std::vector<std::string> lastBatchKinds() { return {kDrop, kFill}; }

/// Numbers of the program's chimera.training that the run replaces.
struct TrainingNumbers {
  std::optional<double> learningRate, minLr, weightDecay, beta1, beta2,
      momentum, clipNorm;
  std::optional<std::string> lrSchedule;
  std::optional<uint64_t> warmup, decaySteps, lrSteps, seed;
  std::vector<std::string> noDecay; ///< empty: the program's own patterns
};

/// The options of chimera-run. Its --help describes them.
struct RunSettings {
  std::string program;
  std::string stages = kAuto;
  std::vector<std::string> data;
  std::string tokens = kAuto;
  bool trustData = false;
  uint64_t mask = 0;
  double maskRate = 0.15;
  std::vector<uint64_t> pairs; ///< the tokens [CLS], [SEP] and [PAD]
  bool withinDocuments = false;
  uint32_t readAhead = 2; ///< steps
  uint64_t documentEnd = 0;
  std::string load;
  std::string names;           ///< file with the names of saved tensors
  std::string allowNativeCode; ///< folder of the native code
  std::string save;
  std::string saveGradients;
  std::string checkpoint;       ///< folder; empty: writes no checkpoints
  uint64_t checkpointEvery = 0; ///< steps; 0: only at the end
  uint64_t keep = 2;            ///< number of checkpoints; 0: all
  std::string resume;           ///< folder of checkpoints, or a checkpoint
  std::string log;
  std::string tensorboard; ///< folder of event files
  std::string profile;
  std::string trace;
  std::string calibrate; ///< a file; if given, calibrates and does not train
  uint32_t ranks = 0;    ///< number of ranks (threads) that calibrate
  uint64_t traceSteps = 1;
  std::string transport = kAuto;
  std::string device = kHost;
  uint64_t deviceSeed = 0;
  std::string progress = kAuto;
  std::string allReduce = kOrdered;
  uint64_t steps = 10;
  TrainingNumbers training;
  uint64_t epochs = 0; ///< if given, sets `steps`
  std::string lastBatch = kDrop;
  uint64_t generate =
      0; ///< number of tokens; if given, generates and does not train
  std::string prompt;
  double temperature = 1;
  uint64_t generateSeed = 0;
  uint32_t threads = 0;          ///< 0: an equal share of the cores
  std::optional<double> timeout; ///< seconds; 0: no limit
  std::optional<double> grace;   ///< seconds; 0: a signal ends the run at once
  double holdOut = 0.1;
  std::vector<std::string> validation; ///< files, if not a part of `data`
  uint64_t evaluateSamples = 64;
  uint64_t evaluateEvery = 0; ///< steps; 0: only at the end
  double unitNanoseconds = 0;
  bool cudaGraphs = false;
  uint64_t skipNonFinite = 0; ///< number of steps that may be left out
  bool sequential = false;
  bool checkReplicas = false;
  bool quiet = false;
  std::set<std::string>
      givenOptions; ///< names of the options that the user gave
};

} // namespace chimera

#endif // CHIMERA_TOOLS_RUNSETTINGS_H
