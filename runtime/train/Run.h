//===- Run.h - A training run, from first step to result --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks are threads of this process or the processes of a job. Either way each
// runs its interpreter; then one of them, the root, has the losses, gets the
// weights and says what came out while the others wait, asleep.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_RUN_H
#define CHIMERA_RUNTIME_TRAIN_RUN_H

#include "runtime/interpreter/Interpreter.h"
#include "runtime/train/Accelerator.h"
#include "runtime/train/Agreement.h"
#include "runtime/watch/Signals.h"

namespace chimera::runtime {

struct StepEvent {
  uint64_t step; ///< from 0
  std::optional<Loss> loss;
  double seconds; ///< since the first step began
};

/// What one rank used.
struct RankUse {
  uint64_t instructions;
  uint64_t arenaBytes;
  uint64_t stashBytes; ///< the most at any time
  uint64_t peakBytes;  ///< of values in the arena and stashes together
  uint64_t hostBlocks; ///< waits of the host for its device within a step
  /// All that the rank has taken of its device; 0 where that cannot be told.
  uint64_t deviceBytes;
};

/// What was not finite first.
struct Divergence {
  uint64_t step;                ///< from 0
  std::optional<double> loss;   ///< of the step; none: it was gradients,
  std::vector<uint32_t> stages; ///< of these stages
};

struct RunResult {
  std::vector<std::byte> weights;   ///< the whole model, if asked for
  std::vector<std::byte> gradients; ///< of the last step, scaled, if asked for
  std::optional<uint64_t> digest;   ///< of the weights, if asked for
  std::vector<RankUse> ranks;
  std::vector<Profile> profiles;  ///< of all ranks, if asked for
  std::vector<Trace> traces = {}; ///< likewise, by one clock
  /// How many nanoseconds times of several hosts may be off from each other's
  /// in them; none on one host.
  std::optional<int64_t> clockError = {};
  uint64_t steps; ///< fewer than asked for where the run was stopped
  double seconds; ///< from the first step's begin to the last one's end
  /// The signal that stopped the run before its last step; 0: none.
  int stoppedBy = 0;
  std::optional<Divergence> divergence = {};
  /// For each stage: of how many steps the weights have all updates.
  std::vector<uint64_t> weightsAfter = {};

  /// Whether the run ended as it was asked to.
  bool isWhole() const {
    return !divergence && (stoppedBy == 0 || stoppedBy == SIGUSR1);
  }
};

struct TrainingRun {
  const program::ProgramT &program;
  StageFactory stages;
  DataSource &data;
  uint64_t steps = 1;
  /// Further settings that ranks in processes of their own must have in common:
  /// otherwise the run fails before its first step.
  std::vector<Shared> shared = {};
  /// The longest wait for another rank. While the root saves, it is the longest
  /// wait for a sign of life from it. It also limits one instruction of a rank
  /// that is a thread, and the root's saving where that hangs.
  std::chrono::milliseconds timeout = kForever;
  /// SIGINT and SIGTERM end the process with a report and status 128 + signal,
  /// after the grace time if there is one; SIGUSR1 stops all ranks after the
  /// same step. Without it nothing is heard.
  Signals *signals = nullptr;
  bool gatherWeights = false;
  /// Where a gradient or a loss is not finite, the updates halt
  /// (Stage::optimizerStep), all ranks stop after the same step, and the result
  /// says so: its weights are the last finite ones.
  bool keepFinite = false;
  bool digestWeights = false; ///< see WeightsDigest.h
  bool gatherGradients = false;
  bool checkReplicas = false;
  bool profile = false;
  /// Of how many last steps it is told what each rank did; 0: of none.
  uint64_t traceSteps = 0;
  /// How the model is evaluated, if it is; its onLoss is called like onStep.
  Evaluation evaluation = {};
  const MemoryMeter *meter = nullptr;
  /// Whose devices the ranks have; else they compute on the host. A process has
  /// one for each of its ranks, or is one rank, which may share it.
  Accelerator *accelerator = nullptr;
  /// How often each rank on an accelerator rehearses a step before the first
  /// (see Interpreter::rehearse).
  int rehearsals = 1;
  /// Whether all-reduces are the transport's own, which may sum in another
  /// order than the program's. Over MPI and on accelerators only; equal at all
  /// ranks.
  bool ownAllReduce = false;
  /// Called on each rank's thread first.
  std::function<void()> onThread = {};
  /// Says what is wrong with the `part`-th of `parts` equal parts of the data;
  /// empty if nothing is. The ranks of a host of a job share its parts, before
  /// the first step. Where ranks are threads, the caller has asked.
  std::function<std::string(uint32_t part, uint32_t parts)> faultOfData = {};
  /// All are called at the root only, the first on its thread, the others on
  /// another, after onThread; what they throw fails the run. The second hears
  /// of the result before the model is evaluated after its last step: whatever
  /// becomes of that, it can save. The third is the last.
  std::function<void(const StepEvent &)> onStep = {};
  std::function<void(const RunResult &)> onResult = {};
  std::function<void()> onEnd = {};
  /// Called by every rank, on its thread, where a signal of the grace time
  /// stopped the run.
  std::function<void(int)> onStopped = {};
};

/// Some rank of the run failed. The message is the report on all ranks, without
/// its last line break.
class RunFailure : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The lowest rank that has the loss, 0 where none has.
uint32_t rootOf(const program::ProgramT &program);

/// The run's evaluation, of which the root alone hears.
Evaluation evaluationOf(const TrainingRun &run, bool isRoot);

/// Makes every stage of the program once and drops it, so that one that does
/// not fit is told before anything runs. Throws what the factory throws, and
/// std::invalid_argument where the run asks for what it cannot have.
void checkRun(const TrainingRun &run);

/// Ranks that one process takes as threads. Each pair of them has two channels
/// of 64 bytes: 64 MiB for so many ranks, 1 GiB for four times as many.
inline constexpr uint32_t kMostThreads = 1024;

/// Runs all ranks as threads. Throws RunFailure if a rank fails, and
/// std::invalid_argument for more than kMostThreads ranks. If another rank then
/// computes on for seconds, it reports and calls endProcess. Like runInJob it
/// expects that the caller has asked checkCapacity, as runOnHost and runAsRank
/// do.
void runInProcess(const TrainingRun &run);

/// Runs all ranks on simulated devices, by one thread in an order that the seed
/// decides (see runtime/device/simulated), and gathers as runInProcess does, on
/// threads. Throws RunFailure where a rank fails, operations of ranks wait for
/// each other, or use the same memory without an order; the message names the
/// seed. Steps have no timeout. Throws std::invalid_argument for more than
/// kMostThreads ranks, and for a profile or a trace: virtual time has none.
void runSimulated(const TrainingRun &run, uint64_t seed);

/// Runs this process's rank of a job. Requires as many ranks as the program
/// has. If any rank of the host fails or dies, the process ends (endProcess)
/// with status 1 and one of them reports. With a timeout, a process that is
/// stopped for longer is a failure too. A rank whose status page the others
/// cannot open counts as a host of its own. The channels are of memory of
/// `device`.
void runInJob(const TrainingRun &run, Control &control, Device &device,
              Channels &channels, const std::vector<uint32_t> &hostRanks);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_RUN_H
