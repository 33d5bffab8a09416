//===- Interpreter.h - Runs one worker's instructions -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loop over the instructions of one worker. It owns the worker's memory (an
// arena, allocated in blocks, and a table of stashes) and the requests in
// flight. It depends on no particular device, channel or model. It puts the
// computations of stages on a queue of the device, posts messages and
// all-reduces, and uses events to order the messages and the computations. It
// reads and writes no values itself.
//
// A stage computes one piece at a time. A piece is the micro-batch, or the part
// of a micro-batch, that one backward covers. If a forward covers several
// pieces, the interpreter calls the stage once for each piece. The samples are
// the leading dimension of all values, so a piece is a slice of a value's
// bytes.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_INTERPRETER_H
#define CHIMERA_RUNTIME_INTERPRETER_INTERPRETER_H

#include "runtime/channel/Channels.h"
#include "runtime/data/ReadAhead.h"
#include "runtime/device/Device.h"
#include "runtime/interpreter/DeviceFlags.h"
#include "runtime/interpreter/Evaluation.h"
#include "runtime/interpreter/LastUses.h"
#include "runtime/interpreter/MemoryMeter.h"
#include "runtime/interpreter/Profile.h"
#include "runtime/interpreter/Scale.h"
#include "runtime/interpreter/Status.h"
#include "runtime/interpreter/Trace.h"
#include "runtime/interpreter/ZeroCopy.h"
#include "runtime/model/Stage.h"
#include "runtime/program/BackwardPieces.h"
#include "runtime/system/Deadline.h"

#include <deque>
#include <map>
#include <optional>

namespace chimera::runtime {

/// The bytes of the weights or gradients of each replica, by (pipeline, stage).
using ReplicaBytes = std::map<std::pair<uint32_t, uint32_t>, HostBytes>;

class Interpreter {
public:
  struct Options {
    /// The number of steps before the first step that `run` runs.
    uint64_t firstStep = 0;
    /// The number of updates of each weight before firstStep.
    uint64_t firstUpdate = 0;
    /// The number of steps of the whole training, on which the learning rate
    /// may depend. 0: the steps up to the end of the first call of `run`.
    uint64_t steps = 0;
    /// The timeout of every wait of the host.
    std::chrono::milliseconds timeout = kForever;
    /// Whether to keep a copy of each update's gradient sum until the next
    /// update.
    bool keepGradients = false;
    /// Whether to keep the weights finite. If so, a replica's first gradient
    /// sum that is not finite, and all later ones, do not change its weights
    /// (Stage::optimizerStep): its updates have halted. `onHalt` is called at
    /// the end of the step in which the first replica of this worker halts.
    bool keepFinite = false;
    std::function<void()> onHalt = {};
    /// The number of updates with a norm that is not finite that are left out
    /// before such a norm halts the updates (Update::skipNonFinite). Has no
    /// effect unless the program clips.
    uint64_t skipNonFinite = 0;
    /// Called with the number of each step, except the first, before the step
    /// begins. If it returns false, the run ends before this step. Without a
    /// flush, part of this step has already run together with the previous
    /// step, so the run ends after this step instead.
    std::function<bool(uint64_t)> mayBeginStep = {};
    const MemoryMeter *meter = nullptr;
    /// If set, collects the durations of instructions and steps.
    Profile *profile = nullptr;
    /// If set, collects the times of each instruction. On an asynchronous
    /// device, the times are added at the end of the run.
    Trace *trace = nullptr;
    /// The number of steps whose samples a thread loads ahead of the run
    /// (ReadAhead.h). 0: instructions load them.
    uint32_t readAhead = 0;
    /// Evaluations between steps. They require a flush. Without a flush, stages
    /// update their weights at different times, so at no moment do all stages
    /// have the weights of the same step. There is no evaluation after the last
    /// step; the caller may call `evaluate`.
    Evaluation evaluation = {};
  };

  /// Creates the stages and initialises the weights. Requires a verified
  /// program, its `groups` (communicationOf), and channels with as many ranks
  /// as the program has. The channels must work on the device's memory. Throws
  /// an exception of `factory` if a stage cannot run the program.
  Interpreter(const program::ProgramT &program,
              std::span<const ReduceGroup> groups, const StageFactory &factory,
              DataSource &data, Device &device, Channels &channels,
              Status &status, const Options &options);
  ~Interpreter();

  /// Executes the computations of one step, with zeros as inputs, in the order
  /// and in the memory of the step. Then executes the forwards of an evaluation
  /// if there are evaluations. Sends nothing and changes no weights. During
  /// these computations, libraries load their code and allocate their memory.
  /// If a library did this later, the device could block until its
  /// communication ends, and two devices could block each other for ever. Call
  /// `warmUp` before `begin` or `run`, or not at all.
  void warmUp();

  using OnStep = std::function<void(uint64_t, std::optional<Loss>)>;

  /// Runs the next `steps` steps. With a flush, it runs the body for each step.
  /// Without a flush, it runs the prologue, the body for each step but the
  /// last, and the epilogue. Calls `onStep` after each step, with the step's
  /// loss if this worker has one. Another call continues with the next step.
  ///
  /// On an asynchronous device, the host enqueues at most kMaxStepsAhead whole
  /// steps that have not ended on the device. If there are more, the host waits
  /// until the oldest step has ended. It waits only between two steps, never
  /// inside a step.
  void run(uint64_t steps, const OnStep &onStep);
  static constexpr size_t kMaxStepsAhead = 1;

  /// The same as `run`, but the caller advances by single instructions: call
  /// `begin`, then `advance` while `next` returns a position, then `finish`.
  struct Position {
    uint64_t step;
    uint32_t instruction;
  };
  void begin(uint64_t steps, OnStep onStep);
  std::optional<Position> next() const;
  void advance();
  void finish();
  /// Evaluates the model (options.evaluation) after a run, or before the first
  /// one. To evaluate in single instructions, call `beginEvaluation`, then
  /// `advance` and `finish` as above.
  void evaluate();
  void beginEvaluation();
  /// Whether `advance` would block until the device has ended a step.
  bool isTooFarAhead() const;

  /// Copies the state of a replica after a run to host memory: the first
  /// parameters.size() bytes of its weights, and its optimizer state. Waits
  /// until the copies are done.
  void copyState(std::pair<uint32_t, uint32_t> key, Bytes parameters,
                 Bytes optimizer) const;

  /// The weights of this worker's replicas, and the gradient sums of their last
  /// updates if `keepGradients` is set. Floating-point gradients are multiplied
  /// by gradientScale (Scale.h). Call these functions after the run.
  ReplicaBytes weights() const;
  ReplicaBytes gradients() const;

  /// The replicas whose updates have halted (Options::keepFinite), each with
  /// the step in which they halted. Call it after the run.
  const std::map<std::pair<uint32_t, uint32_t>, uint64_t> &halted() const {
    return haltedIn;
  }

  /// The share of the last step that was reported, from 0 to 1, in which this
  /// rank waited for messages and all-reduces of other ranks. None before the
  /// first step has ended. Also none on an asynchronous device without a
  /// profile, because nobody measures its waits.
  std::optional<double> waitingShare() const { return shareOfWaiting; }

  uint64_t instructionsRun() const { return executed; }
  /// The number of times that the host blocked inside a step to wait for the
  /// device.
  uint64_t hostBlocksInSteps() const { return blocksInSteps; }
  /// The number of steps that ended, including the steps before firstStep.
  uint64_t stepsRun() const { return step; }
  /// The bytes allocated for the arena, and the maximum bytes of stashes.
  uint64_t arenaBytes() const { return allocated; }
  uint64_t peakStashBytes() const { return peakStash; }
  /// The maximum over all instructions of the sum of two sizes: the bytes of
  /// the values in the arena (ArenaUse.h), and the bytes of stashes. The memory
  /// meter measures the stashes before and after each instruction, and the
  /// larger number is used.
  uint64_t peakBytes() const { return peak; }

private:
  using Key = std::pair<uint32_t, uint32_t>;
  /// A copy of a gradient sum.
  struct GradientCopy {
    Block block;
    Bytes bytes;
    bool isThere = false; ///< whether an update has filled it
  };
  /// The bytes reserved for a loss in host memory. One element of any type
  /// fits. The squared norm of the gradients follows the loss.
  static constexpr uint64_t kLossBytes = 8;

  struct QueuedStep;

  Block allocate(uint64_t bytes) const;
  void findRecomputes();
  void expectLoads();
  bool weighsLabels() const;
  void readAhead();
  std::optional<ReadAhead::Section>
  sectionToRead(uint64_t firstStep, uint64_t endStep, uint64_t number) const;
  void enterSection(uint32_t sectionBegin, uint32_t sectionEnd);
  /// If the current section has no more instructions, ends it, and enters the
  /// next one that has some.
  void leaveFinishedSections();
  void enterEvaluation();
  void findEvaluated();
  void enterPass();
  void skipToEvaluated();
  bool endPass();
  void reportPass(const QueuedStep &pass);
  void endWait(int64_t now);
  void measureStep();
  void setWaitingShare(int64_t waited, int64_t took);
  bool isTimed() const { return (options.profile || options.trace) && !pass; }
  void executeTimed(const program::Instruction &instruction);
  void addToProfile(const program::Instruction &instruction,
                    int64_t nanoseconds);
  void profileStep(const QueuedStep &step);
  void keepForTrace(QueuedStep &step);
  void traceDevice();
  void executeOne(const program::Instruction &instruction, uint32_t index,
                  uint64_t step);
  void load(const program::Instruction &instruction, uint64_t step);
  void forward(const program::Instruction &instruction, uint64_t step);
  void post(const program::Instruction &instruction, uint32_t index);
  void recompute(const program::Instruction &instruction, uint64_t step);
  void startAllReduce(const program::Instruction &instruction, uint32_t index);
  void finishWait(const program::Instruction &waited);
  void squaredNorm(const program::Instruction &instruction);
  void update(const program::Instruction &instruction, uint64_t step);
  /// Whether an instruction may compute for a long time. During this time, the
  /// host does not call the channels.
  static bool computes(program::Opcode opcode);
  void warmUpUpdate(const program::Instruction &instruction, Bytes halted);
  void makeErrorFlags();
  void expectNoErrors(const QueuedStep &step) const;
  void makeHaltFlags();
  void noteHalts(const QueuedStep &step);
  GradientCopy &gradientCopyOf(const program::Instruction &instruction);
  void keepGradient(const program::Instruction &instruction, ConstBytes sum,
                    double scale);
  void noteUses(const program::Instruction &instruction);
  void endStep();
  void reportSteps(size_t mostAhead);
  /// The loss of a step that has ended. None if this worker has no loss.
  std::optional<Loss> lossOf(const QueuedStep &ofStep) const;
  MicroBatch pieceOf(uint64_t step, uint32_t m, uint32_t part,
                     uint32_t parts) const;
  uint64_t stashBytes() const;
  Bytes bytesOf(uint32_t buffer) const;
  std::unique_ptr<Stash> &stashOf(uint32_t buffer);
  Stage *stageOf(const program::Instruction &instruction);
  bool isLast(const program::Instruction &instruction) const {
    return instruction.stage() + size_t(1) == program.stages.size();
  }
  Access usesOutputGradient(const program::Instruction &instruction,
                            Bytes bytes) const;
  uint32_t rankOf(uint32_t peer) const { return firstRank + peer; }

  const program::ProgramT &program;
  const std::span<const ReduceGroup> groups; // by communicator
  const program::WorkerT &worker;
  const Options options;
  DataSource &data;
  Device &device;
  Channels &channels;
  Status &status;
  const uint32_t copy;
  const uint32_t firstRank; // the rank of worker 0 in this data-parallel copy
  const program::BackwardPieces pieces;

  // The order of these members matters: requests must be destroyed before the
  // memory that they use, even after an error.
  std::unique_ptr<Queue> compute;
  const Blocks blocks;
  std::vector<Block> arena; // by block; a message without a copy replaces one
  DeviceFlags errorFlags;   // of stages (StageErrors.cpp)
  std::map<Key, std::unique_ptr<Stage>> stages;
  std::map<Key, GradientCopy> gradientCopies; // by replica
  DeviceFlags haltFlags;                      // of replicas (Halts.cpp)
  std::vector<ElementType> reduceTypes;       // by communicator
  // For each buffer number, the buffer whose memory has its value. A rename
  // instruction permutes this list.
  std::vector<uint32_t> memoryOf;
  std::vector<std::unique_ptr<Stash>> stashes;    // by memoryOf[buffer]
  std::vector<std::unique_ptr<Request>> requests; // by index of the post
  std::vector<bool> isZeroCopy;                   // by index of the post
  // Whether a recompute, and not the forward, makes the stash of a piece.
  // Indexed by stage, then piece.
  std::vector<bool> recomputed;
  Block shares;      // for the losses of the parts of a micro-batch
  LastUses lastUses; // by memoryOf[buffer]
  // With Options::readAhead. `plannedEnd` is the step before which it ends.
  std::unique_ptr<ReadAhead> ahead;
  uint64_t plannedEnd = 0;
  uint32_t groupEnd = 0;

  // An instruction whose times the device measures.
  struct Timed {
    uint64_t section; // Trace::Section::number
    uint32_t instruction;
    Event begin, end;
  };
  struct QueuedStep {
    uint64_t step;
    std::optional<uint64_t> pass; // set if this is a pass of an evaluation
    uint64_t losses;              // its entry is losses[this % losses.size()]
    std::optional<ElementType> lossType; // none if this worker has no loss
    bool hasNorm; // whether a squared norm follows the loss
    Event end;
    std::vector<Timed> timed; // only on an asynchronous device
  };
  std::deque<QueuedStep> queuedSteps; // not reported yet; oldest first
  // Host memory for the losses of the queued steps and the current step, each
  // with the squared norm of the step's gradients after it. Step after step
  // uses the next entry, cyclically.
  std::vector<Block> losses;
  uint64_t nextLoss = 0;
  std::optional<ElementType> lossOfStep;
  bool hasNormOfStep = false;
  uint64_t blocksInSteps = 0;

  // The position of the run. The next instruction is `index`, and the current
  // section ends at `end`.
  OnStep onStep;
  bool inPrologue = false;
  uint32_t index = 0;
  uint32_t end = 0;
  uint64_t step = 0;
  uint64_t steps = 0;           // the run ends before this step
  uint64_t stepsOfTraining = 0; // the learning rate may depend on it
  // The time at which the current step began: on the host's clock, or on an
  // asynchronous device. `timed` has the instructions of this step that the
  // device measures.
  int64_t stepBegin = 0;
  // On a synchronous device: the time for which the current step has waited for
  // other ranks, and the begin of the wait that the host is executing, if any.
  int64_t waitedInStep = 0;
  std::optional<int64_t> waitBegin;
  std::optional<double> shareOfWaiting;
  Event stepBeginOnDevice;
  std::vector<Timed> timed;
  // For a trace on an asynchronous device: the measured instructions of each
  // step that has ended, oldest first.
  std::deque<std::vector<Timed>> tracedOnDevice;

  // During an evaluation: the current pass, the weights that it uses, and a
  // copy of `memoryOf` from before the pass.
  std::optional<uint64_t> pass;
  std::map<Key, Bytes> evaluatedWeights;
  std::vector<uint32_t> memoryBeforePass;
  std::vector<bool> evaluated; // by instruction: whether a pass runs it
  double lossOfPasses = 0, rightOfPasses = 0;

  std::map<Key, uint64_t> haltedIn; // the step in which a replica halted

  uint64_t executed = 0;
  int64_t meterStart = 0;
  bool hasWarmedUp = false;
  uint64_t allocated = 0;           // bytes of the arena
  std::vector<uint64_t> arenaInUse; // by instruction
  uint64_t stashBefore = 0; // bytes of stashes before the next instruction
  uint64_t peakStash = 0;
  uint64_t peak = 0;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_INTERPRETER_H
