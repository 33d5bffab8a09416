//===- CheckpointedSteps.h - The steps of a rank, with checkpoints -*- C++ -*-//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs the steps of one rank in segments. After a segment, no step is under
// way, so all stages have the weights of the same step: a checkpoint is written
// there.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_CHECKPOINTEDSTEPS_H
#define CHIMERA_RUNTIME_TRAIN_CHECKPOINTEDSTEPS_H

#include "runtime/control/Control.h"
#include "runtime/train/TrainingRun.h"
#include "runtime/watch/StatusPage.h"

namespace chimera::runtime {

/// The number of the step at which the next segment ends, if `step` steps have
/// ended: the next multiple of `every` above `step`, or `steps`.
uint64_t segmentEnd(uint64_t step, uint64_t steps, uint64_t every);

/// Why a rank whose updates have halted writes no checkpoint.
inline constexpr char kHalted[] =
    "updates have halted, because a loss or a gradient is not finite";

/// Gives the outcome of a checkpoint, if there is one, to run.onCheckpoint.
void reportCheckpoint(const TrainingRun &run,
                      const std::optional<CheckpointOutcome> &outcome);

/// The parts of a checkpoint of `program`: its stages.
std::vector<CheckpointPart> stageParts(const program::ProgramT &program);

/// The parts that this rank writes. Stage s is written by the rank that has it
/// in pipeline 0 of the first data-parallel copy.
std::vector<CheckpointPart> checkpointParts(const program::ProgramT &program,
                                            uint32_t rank);

/// The bytes of the copies of state that this rank keeps for checkpoints.
/// Requires a program with a model.
uint64_t checkpointCopyBytes(const program::ProgramT &program, uint32_t rank);

/// Checks that the memory_cap of each worker has room for the copy of its part
/// of a checkpoint, beside its arena and, at its peak, beside its live values.
/// Returns an error message, or an empty string. Requires a
/// program with a model.
std::string checkpointMemoryError(const program::ProgramT &program);

/// The largest copy of a rank, in bytes.
uint64_t largestCheckpointCopy(const program::ProgramT &program);

/// The options of a writer of the run's checkpoints.
CheckpointWriter::Options writerOptions(const TrainingRun &run, size_t parts,
                                        uint64_t nonce, bool isRoot);

/// Makes the writer of this rank. Every rank of a run with checkpoints must
/// call this: the root sends a random number to the others. Throws the
/// exceptions of CheckpointWriter and of waits for other ranks.
std::unique_ptr<CheckpointWriter> makeCheckpointWriter(const TrainingRun &run,
                                                       Control &control);

/// Waits until the last checkpoint is written or given up, and reports it
/// (run.onCheckpoint). Every rank must call this, before the next checkpoint
/// and after the last one, in the state Status::Saving. The timeout limits how
/// long a rank is silent, not how long it writes. Throws the exceptions of
/// waits for other ranks.
void finishCheckpoint(const TrainingRun &run, Control &control,
                      CheckpointWriter &writer);

/// The reaction to SIGUSR2: calls `askToSave` if the run writes checkpoints.
/// Otherwise the first call on this host, for all ranks that share `page`,
/// writes to standard error that there will be none.
void handleSaveSignal(const TrainingRun &run, StatusPage &page,
                      const std::function<void()> &askToSave);

/// Asks a function before each step what happens, and keeps its last answer.
class StepGate {
public:
  using Decide = std::function<StepDecision(uint64_t)>;
  explicit StepGate(Decide decide) : decide(std::move(decide)) {}

  /// Whether the step may begin now.
  bool mayBegin(uint64_t step) {
    last = decide(step);
    return last == StepDecision::Begin;
  }
  StepDecision lastDecision() const { return last; }
  void forget() { last = StepDecision::Begin; }

private:
  const Decide decide;
  StepDecision last = StepDecision::Begin;
};

/// Runs the steps of `run` on `interpreter`, which must ask `gate` before each
/// step that it may begin (Interpreter::Options). This function asks `gate`
/// before the first step of each segment but the first. A segment ends where
/// `gate` wants a checkpoint, or at a multiple of checkpoints->every. Evaluates
/// before the first step if evaluatesAtStart(run), and after the last step of a
/// segment if an evaluation is due and the run goes on, before the checkpoint
/// of this step is written. `writer` may be null. Calls `afterSteps`, unless it
/// is empty, before ranks exchange messages on `control`. `fault` returns why
/// this rank's state must not be written, or an empty string.
void runSegments(const TrainingRun &run, Control &control,
                 Interpreter &interpreter, Status &status,
                 CheckpointWriter *writer, const Interpreter::OnStep &onStep,
                 StepGate &gate, const std::function<void()> &afterSteps,
                 const std::function<std::string()> &fault);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_CHECKPOINTEDSTEPS_H
