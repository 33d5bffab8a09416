//===- TrainingRun.h - What a training run does -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_TRAININGRUN_H
#define CHIMERA_RUNTIME_TRAIN_TRAININGRUN_H

#include "runtime/interpreter/Interpreter.h"
#include "runtime/model/checkpoint/Writer.h"
#include "runtime/train/Accelerator.h"
#include "runtime/train/Agreement.h"
#include "runtime/watch/Signals.h"

#include <stdexcept>

namespace chimera::runtime {

struct StepEvent {
  uint64_t step; ///< of the training, from 0
  std::optional<Loss> loss;
  double seconds; ///< since the first step began
  double learningRate = 0;
  /// The memory and the share of waiting of all ranks. Each rank counts the
  /// last step that it has ended. If the ranks are on several hosts, each rank
  /// counts the step three steps before. The first three steps then count the
  /// ranks of one host.
  StepUse use = {};
};

/// The resources that one rank used.
struct RankUse {
  uint64_t instructions;
  uint64_t arenaBytes;
  uint64_t stashBytes; ///< maximum of all stashes together
  uint64_t peakBytes;  ///< maximum of arena values and stashes together
  /// The number of times that the host waited for its device within steps.
  uint64_t hostBlocks;
  /// The rank's memory on its device; 0 if unknown.
  uint64_t deviceBytes;
};

/// The first step in which a loss or a gradient was not finite.
struct Divergence {
  uint64_t step; ///< from 0
  /// The loss of the step. None if gradients were not finite instead.
  std::optional<double> loss;
  /// If there is no loss: the stages whose gradients were not finite. Empty if
  /// only the norm of all gradients is known.
  std::vector<uint32_t> stages;
  /// The number of earlier steps that were left out (run.skipNonFinite).
  uint64_t skipped = 0;
};

struct RunResult {
  std::vector<std::byte> weights;   ///< the whole model, if requested
  std::vector<std::byte> gradients; ///< of last step, scaled, if requested
  std::optional<uint64_t> digest;   ///< of the weights, if requested
  std::vector<RankUse> ranks;
  std::vector<Profile> profiles;  ///< of all ranks, if requested
  std::vector<Trace> traces = {}; ///< of all ranks, in times of one clock
  /// The maximum error of a difference between times of two hosts in the
  /// traces, in nanoseconds. None if all ranks are on one host.
  std::optional<int64_t> clockError = {};
  /// The steps of the training that have ended: fewer than requested if the
  /// run was stopped.
  uint64_t steps;
  double seconds; ///< from the begin of the first step to the end of the last
  /// The signal that stopped the run before its last step; 0 if none.
  int stoppedBy = 0;
  std::optional<Divergence> divergence = {};
  /// For each stage: the number of steps whose updates its weights include.
  std::vector<uint64_t> weightsAfter = {};

  /// Whether the run ended regularly: it did not diverge, and no signal except
  /// SIGUSR1 stopped it.
  bool endedRegularly() const {
    return !divergence && (stoppedBy == 0 || stoppedBy == SIGUSR1);
  }
};

/// When and where a run writes checkpoints (runtime/model/checkpoint/).
struct CheckpointSettings {
  std::string folder;
  uint64_t every = 0;      ///< steps between checkpoints; 0: only at the end
  uint64_t keep = 0;       ///< number of newest checkpoints to keep; 0: all
  std::string resumedFrom; ///< the checkpoint of firstStep; empty if none
  uint64_t dataDigest = 0; ///< 0 if the data are unknown
  const WeightNames *names = nullptr; ///< of tensors in the files; not null
};

struct TrainingRun {
  const program::ProgramT &program;
  StageFactory stages;
  DataSource &data;
  /// The steps of the training. If the run resumes, it runs those from
  /// `firstStep` on.
  uint64_t steps = 1;
  uint64_t firstStep = 0;
  /// The number of updates of each weight before `firstStep`. If it is not set,
  /// the earlier steps had as many updates as those of `program`.
  std::optional<uint64_t> firstUpdate = {};
  /// If set, the run writes a checkpoint after every `every` steps, one for
  /// each SIGUSR2, and one after its last step, unless updates have halted
  /// (keepFinite). Schedules without a flush run their epilogue before a
  /// checkpoint and their prologue after it.
  std::optional<CheckpointSettings> checkpoints = {};
  /// The options that have changed `program` after it was read. They must be
  /// equal at all ranks of a job. If they differ, the programs differ too, and
  /// the error names the option.
  std::vector<AgreedValue> programOptions = {};
  /// Additional settings that must be equal at all ranks of a job; otherwise
  /// the run fails before its first step.
  std::vector<AgreedValue> agreedValues = {};
  /// The longest wait for another rank. While the root saves, this is the
  /// longest time without a heartbeat from the root. It also limits a single
  /// instruction if ranks are threads, and the time for which the root's saving
  /// may hang.
  std::chrono::milliseconds timeout = kForever;
  /// If ranks are threads and one of them fails: how long the others may take
  /// to end. Then the process ends.
  std::chrono::milliseconds patience = std::chrono::seconds(3);
  /// The signals that the run handles. SIGINT and SIGTERM end the process with
  /// a report and the status 128 + signal. If there is a grace time, they first
  /// stop the run after a step. SIGUSR1 stops all ranks after the same step.
  /// SIGUSR2 writes a checkpoint after a step, if `checkpoints` is set. If this
  /// is null, signals are not handled.
  Signals *signals = nullptr;
  bool gatherWeights = false;
  /// If true and a gradient or a loss is not finite, updates halt
  /// (Stage::optimizerStep) and all ranks stop after the same step.
  /// RunResult::divergence then says why, and the weights of each stage are its
  /// last finite ones.
  bool keepFinite = false;
  /// Only for programs that clip: the number of steps that may be left out
  /// because the norm of their gradients is not finite. The run stops at the
  /// next such step. Requires keepFinite.
  uint64_t skipNonFinite = 0;
  bool digestWeights = false; ///< see WeightsDigest.h
  bool gatherGradients = false;
  bool checkReplicas = false;
  bool profile = false;
  /// The number of last steps that are traced on each rank; 0 for none.
  uint64_t traceSteps = 0;
  /// The evaluation of the model, if any. Its onResult is called on the same
  /// thread as onStep.
  Evaluation evaluation = {};
  const MemoryMeter *meter = nullptr;
  /// The accelerator whose devices the ranks use; null if they compute on the
  /// host. Ranks may share a device (see deviceNumberOf).
  Accelerator *accelerator = nullptr;
  /// The number of warm-up runs of a step on each rank with an accelerator,
  /// before the first step (see Interpreter::warmUp).
  int warmUpRuns = 1;
  /// Whether all-reduces use the transport's own implementation, which may sum
  /// in another order than the program's. Only over MPI and on accelerators.
  /// Must be equal at all ranks.
  bool transportAllReduce = false;
  /// The first function that is called on each rank's thread.
  std::function<void()> onThread = {};
  /// The number of steps, at most kMaxReadAhead, whose samples a thread of each
  /// rank loads ahead, as far as they fit beside the rest into the worker's
  /// memory_cap.
  uint32_t readAhead = 0;
  /// Checks part `part` of `parts` equal parts of the data. Returns an error
  /// message, or an empty string. In a job, the ranks of a host check one part
  /// each before the first step. If ranks are threads, this is not called: the
  /// caller must have checked the data.
  std::function<std::string(uint32_t part, uint32_t parts)> dataError = {};
  /// onStep, onResult and onEnd are called only at the root. If one of them
  /// throws, the run fails. onStep is called on the rank's thread. onResult and
  /// onEnd are called on another thread, on which onThread is called first.
  /// onResult gets the result before the final evaluation. So it can save the
  /// result even if that evaluation fails. onEnd is called after all other
  /// work.
  std::function<void(const StepEvent &)> onStep = {};
  /// Called at the root when a checkpoint has been written, or when this has
  /// failed: on the thread of onStep or, for the last one, of onEnd.
  std::function<void(const CheckpointOutcome &)> onCheckpoint = {};
  std::function<void(const RunResult &)> onResult = {};
  std::function<void()> onEnd = {};
  /// Called by every rank, on its thread, if a signal with a grace time stopped
  /// the run.
  std::function<void(int)> onStopped = {};
};

/// The failure of a run, because a rank failed. The message is the report on
/// all ranks, without the last line break.
class RunFailure : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The lowest rank that has the loss, or 0 if no rank has it.
uint32_t rootOf(const program::ProgramT &program);

/// run.evaluation, with an onResult that may be called at every rank. At ranks
/// other than the root, it does nothing.
Evaluation evaluationOf(const TrainingRun &run, bool isRoot);

/// Whether the weights after `step` steps are evaluated if the run ends there
/// regularly. If it ends early and has a checkpoint, another run will continue:
/// then only if an evaluation is due, because the time may be short.
bool evaluatesAtEnd(const TrainingRun &run, uint64_t step);

/// Whether a run that continues another one first evaluates the weights with
/// which it begins: if an evaluation is due after their step. The other run may
/// have been stopped before it did this.
bool evaluatesAtStart(const TrainingRun &run);

/// Whether a run that ended with `result` gathers its weights: if it must, and
/// unless a signal ended it and its checkpoint has the weights.
bool gathersWeightsAtEnd(const TrainingRun &run, const RunResult &result);

/// The number of updates of each weight before the run's first step.
uint64_t firstUpdateOf(const TrainingRun &run);

/// The maximum number of ranks that are threads of one process. Each pair of
/// ranks has two channels of 64 bytes. That is 64 MiB for this number of ranks,
/// and would be 1 GiB for four times as many.
inline constexpr uint32_t kMaxThreads = 1024;

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_TRAININGRUN_H
