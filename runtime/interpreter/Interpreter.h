//===- Interpreter.h - Runs one worker's instructions -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One loop over instructions. It holds the worker's memory (an arena in blocks
// for byte ranges, a table of stashes) and the requests in flight, and knows
// neither devices nor channels nor models: it puts what stages compute on a
// queue of the device, posts messages and all-reduces, and orders the two by
// events. It reads and writes no value itself. Stages see one piece at a time,
// what one backward covers: the interpreter cuts what a forward covers into
// those. A batch is the leading dimension of all values, so a piece of one is a
// slice of its bytes.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_INTERPRETER_H
#define CHIMERA_RUNTIME_INTERPRETER_INTERPRETER_H

#include "runtime/channel/Channels.h"
#include "runtime/device/Device.h"
#include "runtime/interpreter/HandOver.h"
#include "runtime/interpreter/LastUses.h"
#include "runtime/interpreter/MemoryMeter.h"
#include "runtime/interpreter/Profile.h"
#include "runtime/interpreter/Scale.h"
#include "runtime/interpreter/Status.h"
#include "runtime/interpreter/Trace.h"
#include "runtime/program/Pieces.h"
#include "runtime/stage/Stage.h"
#include "runtime/system/Deadline.h"

#include <deque>
#include <map>
#include <optional>

namespace chimera::runtime {

/// How a model is evaluated: its loss on `passes` times as many micro-batches
/// as a step has, which `data` gives with the number of the pass as the step.
/// All ranks run what forwards a step has, and what moves between them, and
/// nothing else of it: in the same order, so with the same proof.
struct Evaluation {
  DataSource *data = nullptr; ///< null: there is none
  uint64_t passes = 0;
  uint64_t every = 0; ///< so many steps; 0: after the last one alone
  /// Hears of it at workers that have the loss: behind how many steps, and the
  /// mean.
  std::function<void(uint64_t, double)> onLoss = {};
};

/// The bytes of each replica. The key is (pipeline, stage).
using Replicas = std::map<std::pair<uint32_t, uint32_t>, HostBytes>;

class Interpreter {
public:
  struct Options {
    /// The timeout of every wait of the host.
    std::chrono::milliseconds timeout = kForever;
    /// Keep a copy of each update's gradient sums until the next.
    bool keepGradients = false;
    /// Keep the weights finite: each replica's updates halt at its first
    /// gradient sum that is not (Stage::optimizerStep). `onHalt` hears of the
    /// first replica of this worker, when the step has ended.
    bool keepFinite = false;
    std::function<void()> onHalt = {};
    /// Asked before each step but the first. If it says no, the step before was
    /// the last one. Without a flush that step has begun the next one already,
    /// and the next one is the last.
    std::function<bool(uint64_t)> mayBegin = {};
    const MemoryMeter *meter = nullptr;
    /// If set, the durations of instructions and steps are added to it.
    Profile *profile = nullptr;
    /// If set, it is told when each instruction of a step ran. Where a device
    /// executes later, it hears of all at the end of the run.
    Trace *trace = nullptr;
    /// Between steps, where these have a flush: without one, no moment between
    /// two steps has all weights of one step. Not behind the last step, where
    /// the caller decides (evaluate).
    Evaluation evaluation = {};
  };

  /// Makes the stages and initialises weights. Requires a verified program, its
  /// `groups`, and as many ranks as it has. Throws whatever the stages throw
  /// that do not fit. The channels are of memory of the device.
  Interpreter(const program::ProgramT &program,
              std::span<const ReduceGroup> groups, const StageFactory &factory,
              DataSource &data, Device &device, Channels &channels,
              Status &status, const Options &options);
  ~Interpreter();

  /// Executes what stages compute in a step, in its order and with its memory,
  /// on zeros: nothing is sent and no weights change. Then libraries have their
  /// code and their memory before ranks wait for each other: to load or to take
  /// some later may block a device until what it communicates has ended, which
  /// others may do likewise. To be called before `begin`, or not at all.
  void rehearse();

  using OnStep = std::function<void(uint64_t, std::optional<Loss>)>;

  /// Runs `steps` times the body or, without a flush, the prologue, the body
  /// for each step but the last, and the epilogue; calls `onStep` after each
  /// step with its loss, if this worker has one. To be called once.
  ///
  /// Where a device executes later, the host puts at most kMostAhead whole
  /// steps on its queues before it waits for the first of them to end, between
  /// two steps. Within a step it never waits.
  void run(uint64_t steps, const OnStep &onStep);
  static constexpr size_t kMostAhead = 1;

  /// Runs the same, one instruction at a time, for callers that decide when:
  /// `begin`, then `advance` as long as there is a `next`, then `finish`.
  struct Position {
    uint64_t step;
    uint32_t instruction;
  };
  void begin(uint64_t steps, OnStep onStep);
  std::optional<Position> next() const;
  void advance();
  void finish();
  /// After a run: evaluates. `beginEvaluation` in place of `begin` likewise.
  void evaluate();
  void beginEvaluation();
  /// Whether `advance` would wait for the end of a step.
  bool isTooFarAhead() const;

  /// The weights of this worker's replicas, and, if kept, the gradient sums of
  /// their last update, times its scale where they are floating-point numbers.
  /// To be called after the run.
  Replicas weights() const;
  Replicas gradients() const;

  /// The replicas whose updates have halted, and in which step. To be called
  /// after the run.
  const std::map<std::pair<uint32_t, uint32_t>, uint64_t> &halted() const {
    return haltedIn;
  }

  uint64_t instructionsRun() const { return executed; }
  /// How often the host waited for the device within a step.
  uint64_t hostBlocksInSteps() const { return blocksInSteps; }
  /// The steps that ended.
  uint64_t stepsRun() const { return step; }
  /// What the arena takes, and the most bytes of stashes at any time.
  uint64_t arenaBytes() const { return allocated; }
  uint64_t peakStashBytes() const { return peakStash; }
  /// The most bytes at any instruction: values in the arena (see ArenaUse.h)
  /// and stashes, as the meter counts them before or after it.
  uint64_t peakBytes() const { return peak; }

private:
  using Key = std::pair<uint32_t, uint32_t>;
  /// A copy of a gradient sum.
  struct Kept {
    Block block;
    Bytes bytes;
    bool isThere = false; ///< of an update
  };
  /// The bytes of a loss on the host: one element of any type.
  static constexpr uint64_t kLossBytes = 8;

  struct Ended;

  Block allocate(uint64_t bytes) const;
  void findRecomputes();
  void expectLoads();
  void enter(uint32_t sectionBegin, uint32_t sectionEnd);
  void leaveSections();
  void findEvaluated();
  void enterPass();
  void skipToEvaluated();
  bool leavePass();
  void tellOfPass(const Ended &pass);
  bool isTimed() const { return (options.profile || options.trace) && !pass; }
  void executeTimed(const program::Instruction &instruction);
  void addToProfile(const program::Instruction &instruction,
                    int64_t nanoseconds);
  void profileStep(const Ended &step);
  void keepForTrace(Ended &step);
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
  void noteHalts(const Ended &step);
  Bytes flagOf(const Key &key) const;
  Kept &keptOf(const program::Instruction &instruction);
  void keepGradient(const program::Instruction &instruction, ConstBytes sum,
                    double scale);
  void noteUses(const program::Instruction &instruction);
  void endStep();
  void tellOfSteps(size_t mostAhead);
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
  const uint32_t firstRank; // of this copy
  const program::Pieces pieces;

  // Members are in this order because requests must be destroyed before the
  // memory that they use, also after an error.
  std::unique_ptr<Queue> compute;
  const Blocks blocks;
  std::vector<Block> arena; // by block; those handed over change
  std::map<Key, std::unique_ptr<Stage>> stages;
  std::map<Key, Kept> kept;             // gradients
  std::map<Key, Block> flags;           // of updates that have halted
  std::vector<ElementType> reduceTypes; // by communicator
  // For each buffer the buffer in whose memory its value lies. A rename
  // permutes them.
  std::vector<uint32_t> places;
  std::vector<std::unique_ptr<Stash>> stashes;    // by place
  std::vector<std::unique_ptr<Request>> requests; // by post's index
  std::vector<bool> handsOver;                    // by post's index
  // Whether a recompute makes the stash of a piece; indexed by stage, then
  // piece.
  std::vector<bool> recomputed;
  Block shares;      // of a loss
  LastUses lastUses; // by place
  uint32_t groupEnd = 0;

  // A step whose instructions are all on queues.
  struct Timed {
    uint64_t section; // as a trace numbers them
    uint32_t instruction;
    Event begin, end;
  };
  struct Ended {
    uint64_t step;
    std::optional<uint64_t> pass;        // of an evaluation
    uint64_t losses;                     // where the loss is
    std::optional<ElementType> lossType; // none if this worker has no loss
    Event end;
    std::vector<Timed> timed; // where the device executes later
  };
  std::deque<Ended> ended; // oldest first; not told of
  // Host memory for the losses of these steps and the present one, in turns;
  // and for the flags, in the order of `flags`.
  std::vector<Block> losses;
  std::vector<Block> flagsRead;
  uint64_t nextLoss = 0;
  std::optional<ElementType> lossOfStep;
  uint64_t blocksInSteps = 0;

  // Where the run is: before instruction `index` of the section that ends at
  // `end`.
  OnStep onStep;
  bool inPrologue = false;
  uint32_t index = 0;
  uint32_t end = 0;
  uint64_t step = 0;
  uint64_t steps = 0;
  // For a profile: when the step began, on the host or the device, and what the
  // device will have timed.
  int64_t stepBegin = 0;
  Event stepBeginOnDevice;
  std::vector<Timed> timed;
  // For a trace: what steps that have ended timed on a device, oldest first.
  std::deque<std::vector<Timed>> tracedOnDevice;

  // While the model is evaluated: the pass, and what it computes with.
  std::optional<uint64_t> pass;
  std::map<Key, Bytes> evaluatedWeights;
  std::vector<uint32_t> placesBefore;
  std::vector<bool> evaluated; // by instruction, whether a pass runs it
  double sumOfPasses = 0;

  std::map<Key, uint64_t> haltedIn; // step, by replica

  uint64_t executed = 0;
  int64_t meterStart = 0;
  bool hasRehearsed = false;
  uint64_t allocated = 0;           // for the arena
  std::vector<uint64_t> arenaInUse; // by instruction
  uint64_t stashBefore = 0;         // the next instruction
  uint64_t peakStash = 0;
  uint64_t peak = 0;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_INTERPRETER_H
