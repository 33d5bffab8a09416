//===- Interpreter.h - Runs one worker's instructions -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loop over the instructions of one worker. It owns the worker's memory (an
// arena, allocated in blocks, and a table of stashes) and the requests in
// flight. It knows no particular device, channel or model: it puts the
// computations of stages on a queue of the device, posts messages and
// all-reduces, and orders both with events. It reads and writes no values
// itself.
//
// A stage computes one piece at a time: the micro-batch, or the part of it,
// that one backward covers. If a forward covers several pieces, the interpreter
// calls the stage for each. The samples are the leading dimension of all
// values, so a piece is a slice of a value's bytes.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_INTERPRETER_H
#define CHIMERA_RUNTIME_INTERPRETER_INTERPRETER_H

#include "runtime/channel/Channels.h"
#include "runtime/device/Device.h"
#include "runtime/interpreter/LastUses.h"
#include "runtime/interpreter/MemoryMeter.h"
#include "runtime/interpreter/Profile.h"
#include "runtime/interpreter/Scale.h"
#include "runtime/interpreter/Status.h"
#include "runtime/interpreter/Trace.h"
#include "runtime/interpreter/ZeroCopy.h"
#include "runtime/program/BackwardPieces.h"
#include "runtime/stage/Stage.h"
#include "runtime/system/Deadline.h"

#include <deque>
#include <map>
#include <optional>

namespace chimera::runtime {

/// The evaluation of a model: its loss on held-out data. It consists of
/// `passes` passes over as many micro-batches as a step has. `data` gets the
/// number of the pass as its step. All ranks run the forwards of a step and the
/// messages that these need, in the order of a step and nothing else. So the
/// program's proof is valid for a pass.
struct Evaluation {
  DataSource *data = nullptr; ///< null: no evaluation
  uint64_t passes = 0;
  uint64_t every = 0; ///< in steps; 0: only after the last step
  /// Called at workers that have the loss, with the number of steps before the
  /// evaluation and the mean loss.
  std::function<void(uint64_t, double)> onLoss = {};
};

/// The bytes of each replica, by (pipeline, stage).
using Replicas = std::map<std::pair<uint32_t, uint32_t>, HostBytes>;

class Interpreter {
public:
  struct Options {
    /// The timeout of every wait of the host.
    std::chrono::milliseconds timeout = kForever;
    /// Whether to keep a copy of each update's gradient sum until the next
    /// update.
    bool keepGradients = false;
    /// Whether to keep the weights finite: the updates of a replica halt at its
    /// first gradient sum that is not finite (Stage::optimizerStep). `onHalt`
    /// is called at the end of the step in which the first replica of this
    /// worker halts.
    bool keepFinite = false;
    std::function<void()> onHalt = {};
    /// Called before each step except the first. If it returns false, no
    /// further step begins. Without a flush, the step before has already begun
    /// this step, so this step is completed and is the last one.
    std::function<bool(uint64_t)> mayBeginStep = {};
    const MemoryMeter *meter = nullptr;
    /// If set, collects the durations of instructions and steps.
    Profile *profile = nullptr;
    /// If set, collects the times of each instruction. On an asynchronous
    /// device it gets them at the end of the run.
    Trace *trace = nullptr;
    /// Evaluations between steps. They require a flush, because without one the
    /// weights of a step never all exist at the same moment. After the last
    /// step there is no evaluation; the caller may call `evaluate`.
    Evaluation evaluation = {};
  };

  /// Creates the stages and initialises the weights. Requires a verified
  /// program, its `groups`, and as many ranks as the program has. The channels
  /// must work on the device's memory. Throws the exceptions of stages that
  /// cannot run the program.
  Interpreter(const program::ProgramT &program,
              std::span<const ReduceGroup> groups, const StageFactory &factory,
              DataSource &data, Device &device, Channels &channels,
              Status &status, const Options &options);
  ~Interpreter();

  /// Executes the computations of one step with zeros as inputs, in the order
  /// and in the memory of the step. Sends nothing and changes no weights. So
  /// libraries load their code and allocate their memory before ranks wait for
  /// each other. If they did this later, the device could block until its
  /// communication ends, and two devices could block each other for ever. Call
  /// it before `begin` or not at all.
  void warmUp();

  using OnStep = std::function<void(uint64_t, std::optional<Loss>)>;

  /// Runs the program. With a flush, it runs the body `steps` times. Without a
  /// flush, it runs the prologue, the body for each step but the last, and the
  /// epilogue. Calls `onStep` after each step, with the step's loss if this
  /// worker has one. Call it once.
  ///
  /// On an asynchronous device, the host is at most kMaxStepsAhead whole steps
  /// ahead. If it is further ahead, it waits, between two steps, until the
  /// oldest step has ended. It never waits inside a step.
  void run(uint64_t steps, const OnStep &onStep);
  static constexpr size_t kMaxStepsAhead = 1;

  /// Runs the same program one instruction at a time: call `begin`, then
  /// `advance` while `next` returns a position, then `finish`.
  struct Position {
    uint64_t step;
    uint32_t instruction;
  };
  void begin(uint64_t steps, OnStep onStep);
  std::optional<Position> next() const;
  void advance();
  void finish();
  /// Evaluates the model after a run. `beginEvaluation` replaces `begin` if the
  /// caller advances by single instructions.
  void evaluate();
  void beginEvaluation();
  /// Whether `advance` would wait for the end of a step.
  bool isTooFarAhead() const;

  /// The weights of this worker's replicas, and the gradient sums of their last
  /// updates if `keepGradients` is set. Floating-point gradients are multiplied
  /// by their scale. Call them after the run.
  Replicas weights() const;
  Replicas gradients() const;

  /// The replicas whose updates have halted, each with the step in which this
  /// happened. Call it after the run.
  const std::map<std::pair<uint32_t, uint32_t>, uint64_t> &halted() const {
    return haltedIn;
  }

  uint64_t instructionsRun() const { return executed; }
  /// How often the host waited for the device inside a step.
  uint64_t hostBlocksInSteps() const { return blocksInSteps; }
  /// The number of steps that ended.
  uint64_t stepsRun() const { return step; }
  /// The bytes allocated for the arena, and the maximum bytes of stashes.
  uint64_t arenaBytes() const { return allocated; }
  uint64_t peakStashBytes() const { return peakStash; }
  /// The peak of the sum of two sizes: the bytes of the values in the arena
  /// (see ArenaUse.h), and the bytes of stashes by the memory meter. It is
  /// taken before and after each instruction.
  uint64_t peakBytes() const { return peak; }

private:
  using Key = std::pair<uint32_t, uint32_t>;
  /// A copy of a gradient sum.
  struct GradientCopy {
    Block block;
    Bytes bytes;
    bool isThere = false; ///< whether an update has filled it
  };
  /// The bytes of a loss on the host: one element of any type.
  static constexpr uint64_t kLossBytes = 8;

  struct QueuedStep;

  Block allocate(uint64_t bytes) const;
  void findRecomputes();
  void expectLoads();
  void enterSection(uint32_t sectionBegin, uint32_t sectionEnd);
  void enterNextSection();
  void findEvaluated();
  void enterPass();
  void skipToEvaluated();
  bool endPass();
  void reportPass(const QueuedStep &pass);
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
  void update(const program::Instruction &instruction, uint64_t step);
  void makeFlags();
  void readFlags();
  void noteHalts(const QueuedStep &step);
  Bytes flagOf(const Key &key) const;
  GradientCopy &gradientCopyOf(const program::Instruction &instruction);
  void keepGradient(const program::Instruction &instruction, ConstBytes sum,
                    double scale);
  void noteUses(const program::Instruction &instruction);
  void endStep();
  void reportSteps(size_t mostAhead);
  MicroBatch pieceOf(uint64_t step, uint32_t m, uint32_t part,
                     uint32_t parts) const;
  uint64_t stashBytes() const;
  Bytes bytesOf(uint32_t buffer) const;
  std::unique_ptr<Stash> &stashOf(uint32_t buffer);
  Stage *stageOf(const program::Instruction &instruction);
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
  const uint32_t firstRank; // the first rank of this copy
  const program::BackwardPieces pieces;

  // The order of these members matters: requests must be destroyed before the
  // memory that they use, even after an error.
  std::unique_ptr<Queue> compute;
  const Blocks blocks;
  std::vector<Block> arena; // by block; a zero-copy message replaces one
  std::map<Key, std::unique_ptr<Stage>> stages;
  std::map<Key, GradientCopy> gradientCopies; // gradient sums
  std::map<Key, Block> flags;                 // halted or not, on the device
  std::vector<ElementType> reduceTypes;       // by communicator
  // For each buffer, the buffer whose memory has its value. A rename permutes
  // this list.
  std::vector<uint32_t> memoryOf;
  std::vector<std::unique_ptr<Stash>> stashes;    // by entry of `memoryOf`
  std::vector<std::unique_ptr<Request>> requests; // by post's index
  std::vector<bool> isZeroCopy;                   // by post's index
  // Whether a recompute makes the stash of a piece. Indexed by stage, then
  // piece.
  std::vector<bool> recomputed;
  Block shares;      // parts of a loss
  LastUses lastUses; // by entry of `memoryOf`
  uint32_t groupEnd = 0;

  // A step that was put on the queues completely.
  struct Timed {
    uint64_t section; // its number in a trace
    uint32_t instruction;
    Event begin, end;
  };
  struct QueuedStep {
    uint64_t step;
    std::optional<uint64_t> pass;        // the pass, if it is an evaluation
    uint64_t losses;                     // number of its loss
    std::optional<ElementType> lossType; // none if this worker has no loss
    Event end;
    std::vector<Timed> timed; // only on an asynchronous device
  };
  std::deque<QueuedStep> queuedSteps; // oldest first; not reported yet
  // Host memory for the losses of the queued steps and the current step, used
  // in turn. Also host memory for the flags of these steps, in the order of
  // `flags`.
  std::vector<Block> losses;
  std::vector<Block> flagsRead;
  uint64_t nextLoss = 0;
  std::optional<ElementType> lossOfStep;
  uint64_t blocksInSteps = 0;

  // The position of the run. The next instruction is `index`, and the current
  // section ends at `end`.
  OnStep onStep;
  bool inPrologue = false;
  uint32_t index = 0;
  uint32_t end = 0;
  uint64_t step = 0;
  uint64_t steps = 0;
  // For a profile: the time at which the step began, on the host or on the
  // device, and the instructions that are timed on the device.
  int64_t stepBegin = 0;
  Event stepBeginOnDevice;
  std::vector<Timed> timed;
  // For a trace: the timed instructions of steps that have ended on an
  // asynchronous device, oldest first.
  std::deque<std::vector<Timed>> tracedOnDevice;

  // During an evaluation: the current pass, and the weights that it uses.
  std::optional<uint64_t> pass;
  std::map<Key, Bytes> evaluatedWeights;
  std::vector<uint32_t> memoryBeforePass;
  std::vector<bool> evaluated; // by instruction, whether a pass runs it
  double sumOfPasses = 0;

  std::map<Key, uint64_t> haltedIn; // the step in which a replica halted

  uint64_t executed = 0;
  int64_t meterStart = 0;
  bool hasWarmedUp = false;
  uint64_t allocated = 0;           // bytes allocated for the arena
  std::vector<uint64_t> arenaInUse; // by instruction
  uint64_t stashBefore = 0;         // before the next instruction
  uint64_t peakStash = 0;
  uint64_t peak = 0;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_INTERPRETER_H
