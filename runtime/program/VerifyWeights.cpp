//===- VerifyWeights.cpp - Versions of weights, and their updates ---------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Walks each stream as it runs and knows of every buffer of weights how many
// updates are behind them, and of every gradient sum which micro-batches are in
// it, or in which piece of it. Micro-batches are numbered through the run here:
// micro-batch m of step k is k N + m.
//
//===----------------------------------------------------------------------===//

#include "runtime/program/VerifyInternal.h"

#include <algorithm>

namespace chimera::program::verify {

namespace {

constexpr int64_t kNoUpdate = -1;
constexpr uint64_t kUnknownBegin = UINT64_MAX;

/// What a buffer of weights, of optimizer state or of a gradient holds.
struct Value {
  uint32_t replica = kNone; ///< pipeline * stages + stage; kNone: not known
  int64_t version = -1;     ///< of weights and optimizer state
  // Of a sum the lowest and the highest micro-batch, how many backwards, and,
  // over all pipelines, the update that it is for.
  int64_t first = INT64_MAX;
  int64_t last = INT64_MIN;
  uint64_t backwards = 0;
  int64_t update = kNoUpdate;
  bool isReduced = false; ///< a sum of several workers or copies
  /// Of what of the replica's parameters a sum is; on first and last stage
  /// those that are tied go apart from the rest.
  enum class Part : uint8_t { All, Rest, Tied } part = Part::All;
  // Of a bucket of a part: from which byte of it on it is, and which of how
  // many; else 0, and 0 of 1.
  uint64_t begin = 0;
  uint32_t bucket = 0, buckets = 1;

  /// The same a step of `microBatches` and `updates` later.
  Value later(int64_t microBatches, int64_t updates) const {
    Value value = *this;
    if (version >= 0)
      value.version += updates;
    if (first <= last) {
      value.first += microBatches;
      value.last += microBatches;
    }
    if (update != kNoUpdate)
      value.update += updates;
    return value;
  }
  bool isWhole() const { return part == Part::All && buckets == 1; }
  bool operator==(const Value &) const = default;
};

class WeightsVerifier {
public:
  /// `begins` are those of the buckets of each all-reduce, where known.
  WeightsVerifier(const ProgramT &program, const Facts &facts,
                  std::vector<uint64_t> &begins, uint32_t w, Report &report)
      : program(program), facts(facts), begins(begins), report(report), w(w),
        worker(*program.workers[w]),
        stages(static_cast<uint32_t>(program.stages.size())),
        count(program.micro_batches),
        perStep(static_cast<int64_t>(updatesPerStep(program))) {
    // A worker holds few of the replicas.
    for (const State &state : worker.states)
      held.push_back(state.pipeline() * stages + state.stage());
    std::ranges::sort(held);
  }

  void run(const std::vector<Run> &runs) {
    values.assign(worker.buffers.size(), Value());
    taken.assign(held.size(), 0);
    forwards.assign(held.size() * count, Forward());
    for (const State &state : worker.states) {
      for (uint32_t buffer : {state.weights(), state.optimizer_state()}) {
        values[buffer].replica = state.pipeline() * stages + state.stage();
        values[buffer].version = 0;
      }
    }
    for (const Run &part : runs) {
      step = static_cast<int64_t>(part.step);
      section = part.section;
      Section range = sectionsOf(worker)[section];
      for (i = range.begin; i < range.end && !report.full(); ++i)
        verifyOne(worker.instructions[i]);
      verifySectionEnd();
      if (!report.empty())
        return;
    }
    for (const State &state : worker.states) {
      verifyEnd(state, state.weights());
      verifyEnd(state, state.optimizer_state());
    }
  }

private:
  /// The newest forward of a micro-batch of some step.
  struct Forward {
    int64_t microBatch = -1;
    int64_t version = 0;
  };

  void fail(const std::string &message) {
    report.add(Rule::Weights, w, i, message);
  }

  uint32_t replicaOf(const Instruction &instruction) const {
    return instruction.pipeline() * stages + instruction.stage();
  }
  /// Requires a replica that this worker holds.
  size_t local(uint32_t replica) const {
    return std::ranges::lower_bound(held, replica) - held.begin();
  }
  int64_t numberOf(const Instruction &instruction) const {
    return step * count + instruction.micro_batch();
  }
  /// Of the k-th micro-batch that the instruction covers.
  Forward &forwardOf(const Instruction &instruction, uint32_t k = 0) {
    int64_t m = instruction.micro_batch() + k;
    return forwards[local(replicaOf(instruction)) * count +
                    (m < count ? m : m - count)];
  }
  std::string nameOfReplica(uint32_t replica) const {
    return replica == kNone ? "another worker"
                            : "pipeline " + text(replica / stages) + " stage " +
                                  text(replica % stages);
  }

  void verifyOne(const Instruction &instruction) {
    std::span<const uint32_t> in = operandsOf(worker, instruction);
    std::span<const uint32_t> out = resultsOf(worker, instruction);
    switch (instruction.opcode()) {
    case Opcode::ZeroGradient:
      values[out[0]] = Value();
      values[out[0]].replica = replicaOf(instruction);
      return;
    case Opcode::Forward:
      return verifyForward(instruction, values[in[1]]);
    case Opcode::Recompute:
      verifyRead(instruction, values[in[1]]);
      return;
    case Opcode::InputGradient:
      verifyRead(instruction, values[in[2]]);
      return;
    case Opcode::Backward:
      if (verifyRead(instruction, values[in[2]]))
        addGradient(instruction, values[in[3]]);
      return;
    case Opcode::WeightGradient:
      if (verifyRead(instruction, values[in[1]]))
        addGradient(instruction, values[in[2]]);
      return;
    case Opcode::AllReduceStart:
      if (instruction.kind() == ValueKind::WeightGradient)
        verifyReduce(instruction, in, values[out[0]]);
      return;
    case Opcode::Split:
      return split(instruction, in, out);
    case Opcode::Join:
      return join(instruction, in, out);
    case Opcode::OptimizerStep:
      return verifyUpdate(instruction, in, out);
    case Opcode::PostRecv:
      values[out[0]] = Value();
      return;
    case Opcode::Copy:
      return copy(instruction, values[in[0]], values[out[0]]);
    case Opcode::Rename:
      return rename(worker, instruction, values);
    default:
      return;
    }
  }

  /// Whether `weights` are the replica's, and as old as the label says.
  bool verifyLabel(const Instruction &instruction, const Value &weights) {
    uint32_t replica = replicaOf(instruction);
    if (weights.replica != replica) {
      fail("expected the weights of " + nameOfReplica(replica) +
           ", got those of " + nameOfReplica(weights.replica));
      return false;
    }
    int64_t stated = taken[local(replica)] - instruction.weight_version();
    if (program.updates != Updates::Flush)
      stated = std::max<int64_t>(0, stated);
    if (weights.version == stated)
      return true;
    fail("expected weights " + text(instruction.weight_version()) +
         " versions older than the newest, as stated, which are those after " +
         text(stated) + " updates, got those after " + text(weights.version));
    return false;
  }

  void verifyForward(const Instruction &instruction, const Value &weights) {
    if (!verifyLabel(instruction, weights))
      return;
    // All are of one step.
    bool isNext = instruction.micro_batch() >= count;
    for (uint32_t k = 0; k < instruction.micro_batches(); ++k) {
      int64_t m = instruction.micro_batch() + k - (isNext ? count : 0);
      auto expected = static_cast<int64_t>(
          versionRead(program, instruction.stage(), step + isNext, m));
      if (weights.version != expected)
        return fail("expected micro-batch " + text(m) + " of step " +
                    text(step + isNext) + " to read the weights after " +
                    text(expected) + " updates, got those after " +
                    text(weights.version));
      forwardOf(instruction, k) = {numberOf(instruction) + k, weights.version};
    }
  }

  /// Whether the instruction's micro-batch has had its forward, which read the
  /// same version.
  bool verifyRead(const Instruction &instruction, const Value &weights) {
    if (!verifyLabel(instruction, weights))
      return false;
    const Forward &forward = forwardOf(instruction);
    if (forward.microBatch != numberOf(instruction))
      fail("expected a forward of micro-batch " +
           text(instruction.micro_batch()) + " before it, got none");
    else if (forward.version != weights.version)
      fail("expected the weights that the forward of micro-batch " +
           text(instruction.micro_batch()) + " read, after " +
           text(forward.version) + " updates, got those after " +
           text(weights.version));
    else
      return true;
    return false;
  }

  void addGradient(const Instruction &instruction, Value &sum) {
    if (sum.replica != replicaOf(instruction))
      return fail("expected the gradient sum of " +
                  nameOfReplica(replicaOf(instruction)) + ", got that of " +
                  nameOfReplica(sum.replica));
    int64_t microBatch = numberOf(instruction);
    ++sum.backwards;
    if (sum.isReduced)
      return fail("expected a gradient sum of this worker alone to add to, got "
                  "one that is reduced");
    if (!sum.isWhole())
      return fail("expected a whole gradient sum to add to, got " +
                  describe(sum));
    sum.first = std::min(sum.first, microBatch);
    sum.last = std::max(sum.last, microBatch);
    sum.update = kNoUpdate;
  }

  /// The update that `sum`, of one replica, is all of; kNoUpdate if of none.
  /// Requires a known replica. Each backward is there once, so numbers are
  /// enough.
  int64_t updateOfSum(const Value &sum) const {
    const PipelineT &pipeline = *program.pipelines[sum.replica / stages];
    // With nothing to train on it adds nothing (there is a flush).
    if (pipeline.micro_batches.empty())
      return 0;
    bool each = program.updates == Updates::EachMicroBatch;
    uint64_t all = each ? 1 : pipeline.micro_batches.size();
    int64_t length = each ? 1 : count;
    if (sum.backwards != all * pipeline.backward_parts ||
        sum.first / length != sum.last / length)
      return kNoUpdate;
    return sum.first / length;
  }

  /// Which of two pieces of the stage's gradient is tied, if it has such.
  std::optional<unsigned> tiedPieceOf(uint32_t stage) const {
    return tiedPiece(program.tied.get(), stages, stage);
  }

  /// The update that `sum` may be used for; kNoUpdate if for none.
  int64_t takenBy(const Value &sum) const {
    bool alone = program.pipelines.size() == 1 && program.data_parallel == 1;
    bool hasTied =
        sum.part == Value::Part::All && tiedPieceOf(sum.replica % stages);
    return alone && !sum.isReduced && !hasTied ? updateOfSum(sum) : sum.update;
  }

  void split(const Instruction &instruction, std::span<const uint32_t> in,
             std::span<const uint32_t> out) {
    Value piece = values[in[0]];
    if (!isSumOf(instruction, piece) || piece.buckets > 1)
      return fail("expected the gradient sum of " +
                  nameOfReplica(replicaOf(instruction)) + ", whole or a part " +
                  "of it, got " + describe(piece));
    values[in[0]] = Value();
    if (piece.part == Value::Part::All && tiedPieceOf(instruction.stage()))
      return splitTied(instruction, piece, out);
    piece.buckets = static_cast<uint32_t>(out.size());
    for (uint32_t buffer : out) {
      values[buffer] = piece;
      piece.begin += worker.buffers[buffer].bytes();
      ++piece.bucket;
    }
  }

  void splitTied(const Instruction &instruction, Value piece,
                 std::span<const uint32_t> out) {
    size_t tied = *tiedPieceOf(instruction.stage());
    if (out.size() != 2 ||
        worker.buffers[out[tied]].bytes() != program.tied->bytes())
      return fail("expected two pieces, the " + text(program.tied->bytes()) +
                  " bytes of tied parameters " +
                  (tied == 0 ? "before" : "behind") + " the others, got " +
                  text(out.size()) + ", of " +
                  text(worker.buffers[out[tied]].bytes()) + " bytes there");
    for (size_t k : {0, 1}) {
      piece.part = k == tied ? Value::Part::Tied : Value::Part::Rest;
      values[out[k]] = piece;
    }
  }

  void join(const Instruction &instruction, std::span<const uint32_t> in,
            std::span<const uint32_t> out) {
    Value expected = values[in[0]];
    // Only stages that have tied parameters have parts.
    if (isSumOf(instruction, expected) && expected.part != Value::Part::All &&
        expected.buckets == 1)
      return joinTied(instruction, in, values[out[0]]);
    expected.begin = 0;
    expected.bucket = 0;
    expected.buckets = static_cast<uint32_t>(in.size());
    for (uint32_t buffer : in) {
      if (!isSumOf(instruction, expected) || values[buffer] != expected)
        return fail("expected piece " + text(expected.bucket) + " of " +
                    text(expected.buckets) + " of " +
                    describe(expected.part, replicaOf(instruction)) +
                    ", reduced like the others, got " +
                    describe(values[buffer]));
      expected.begin += worker.buffers[buffer].bytes();
      ++expected.bucket;
      values[buffer] = Value();
    }
    expected.begin = 0;
    expected.bucket = 0;
    expected.buckets = 1;
    values[out[0]] = expected;
  }

  /// The result has the update of its parts if it is the same.
  void joinTied(const Instruction &instruction, std::span<const uint32_t> in,
                Value &result) {
    size_t tied = *tiedPieceOf(instruction.stage());
    for (size_t k = 0; k < in.size(); ++k) {
      const Value &piece = values[in[k]];
      Value::Part part = k == tied ? Value::Part::Tied : Value::Part::Rest;
      if (in.size() != 2 || !isSumOf(instruction, piece) ||
          piece.part != part || piece.buckets > 1)
        return fail("expected " + describe(part, replicaOf(instruction)) +
                    " as piece " + text(k) + " of 2, got " + describe(piece));
      if (part == Value::Part::Tied && !piece.isReduced)
        return fail("expected the gradient of tied parameters reduced over "
                    "first and last stage, got that of one");
    }
    const Value &ofTied = values[in[tied]], &ofRest = values[in[1 - tied]];
    Value whole = ofRest;
    whole.part = Value::Part::All;
    whole.update = takenBy(ofRest) == ofTied.update ? ofTied.update : kNoUpdate;
    whole.isReduced = true;
    for (uint32_t buffer : in)
      values[buffer] = Value();
    result = whole;
  }

  /// Of weights, or of the sum for tied parameters, which is that of both
  /// stages' replicas.
  void copy(const Instruction &instruction, const Value &from, Value &to) {
    Value value = from;
    if (instruction.kind() == ValueKind::WeightGradient) {
      if (from.part != Value::Part::Tied || !from.isReduced ||
          !tiedPieceOf(instruction.stage()))
        return fail("expected a reduced gradient of tied parameters, got " +
                    describe(from));
      value.replica = replicaOf(instruction);
    }
    to = value;
  }

  /// Whether it is a sum of the instruction's replica.
  bool isSumOf(const Instruction &instruction, const Value &value) const {
    return value.replica == replicaOf(instruction) && value.version < 0;
  }

  std::string describe(Value::Part part, uint32_t replica) const {
    const char *what = part == Value::Part::All    ? "the gradient sum of "
                       : part == Value::Part::Rest ? "the gradient sum of all "
                                                     "but tied parameters of "
                                                   : "the gradient sum of the "
                                                     "tied parameters of ";
    return what + nameOfReplica(replica);
  }
  std::string describe(const Value &value) const {
    std::string name = describe(value.part, value.replica);
    if (value.buckets > 1)
      name = "piece " + text(value.bucket) + " of " + text(value.buckets) +
             " of " + name;
    return name + (value.isReduced ? ", reduced" : "");
  }

  void verifyReduce(const Instruction &instruction,
                    std::span<const uint32_t> in, Value &sum) {
    const CommunicatorT &communicator =
        *program.communicators[instruction.target()];
    bool ofTied = reducesTied(communicator);
    Value result;
    size_t next = 0;
    for (const Contribution &contribution : communicator.contributions) {
      if (contribution.worker() != w)
        continue;
      const Value &given = values[in[next++]];
      uint32_t replica = contribution.key() * stages + contribution.stage();
      if (given.replica != replica)
        return fail("expected the gradient sum of " + nameOfReplica(replica) +
                    ", got that of " + nameOfReplica(given.replica));
      if (given.isReduced)
        return fail("expected the gradient sum of this worker alone, got one "
                    "that is reduced");
      Value::Part part = ofTied                              ? Value::Part::Tied
                         : tiedPieceOf(contribution.stage()) ? Value::Part::Rest
                                                             : Value::Part::All;
      if (given.part != part)
        return fail("expected " + describe(part, replica) + ", got " +
                    describe(given));
      if (given.bucket != instruction.micro_batch() ||
          given.buckets != std::max<uint32_t>(1, instruction.micro_batches()) ||
          (next > 1 && given.begin != result.begin))
        return fail("expected the bucket of the gradient sum that its label "
                    "names, got " +
                    describe(given));
      // Of another worker's contribution nobody else knows how complete it is.
      int64_t update = updateOfSum(given);
      if (update == kNoUpdate || (next > 1 && update != result.update))
        return fail("expected the gradients of a whole update to reduce, got " +
                    describeSum(given));
      if (next == 1)
        result = given;
      result.update = update;
      result.backwards += next == 1 ? 0 : given.backwards;
      result.first = std::min(result.first, given.first);
      result.last = std::max(result.last, given.last);
    }
    uint64_t &begin = begins[facts.mate[w][i]];
    if (begin == kUnknownBegin)
      begin = result.begin;
    if (result.begin != begin)
      return fail("expected a bucket from byte " + text(begin) +
                  " on, as another worker gives, got one from byte " +
                  text(result.begin));
    if (communicator.contributions.size() !=
        program.pipelines.size() * (ofTied ? 2 : 1))
      result.update = kNoUpdate;
    result.isReduced = true;
    sum = result;
  }

  void verifyUpdate(const Instruction &instruction,
                    std::span<const uint32_t> in,
                    std::span<const uint32_t> out) {
    uint32_t replica = replicaOf(instruction);
    const Value weights = values[in[0]];
    const Value &sum = values[in[2]];
    int64_t &newest = taken[local(replica)];
    if (weights.replica != replica || weights.version != newest)
      return fail("expected the newest weights of " + nameOfReplica(replica) +
                  ", after " + text(newest) + " updates, got those of " +
                  nameOfReplica(weights.replica) + " after " +
                  text(weights.version));
    const Value &state = values[in[1]];
    if (state.replica != replica || state.version != newest)
      return fail("expected the newest optimizer state of " +
                  nameOfReplica(replica) + ", after " + text(newest) +
                  " updates, got that of " + nameOfReplica(state.replica) +
                  " after " + text(state.version));
    auto update = static_cast<int64_t>(updateOf(program, instruction, step));
    if (update != newest)
      return fail("expected the label of the update after " + text(newest) +
                  " others, got that of the one after " + text(update));
    if (!sum.isWhole())
      return fail("expected a whole gradient sum, got " + describe(sum));
    if (sum.replica == kNone || sum.replica % stages != instruction.stage() ||
        takenBy(sum) != update)
      return fail("expected the sum of all gradients that its label names, "
                  "over all pipelines and copies, got " +
                  describeSum(sum));
    Value result = weights;
    result.version = ++newest;
    values[out[0]] = values[out[1]] = result;
  }

  std::string describeSum(const Value &sum) const {
    if (sum.replica == kNone)
      return "an unknown one";
    if (sum.backwards == 0)
      return "one of nothing";
    return "one of " + counted(sum.backwards, "backward") +
           " between micro-batch " + text(sum.first - step * count) + " and " +
           text(sum.last - step * count) + " of stage " +
           text(sum.replica % stages);
  }

  void verifySectionEnd() {
    int64_t expected = section == kPrologue ? 0 : (step + 1) * perStep;
    std::string name = "worker " + text(w) + ": expected ";
    for (size_t k = 0; k < held.size(); ++k)
      if (taken[k] != expected)
        report.add(Rule::Weights,
                   name + counted(static_cast<uint64_t>(expected), "update") +
                       " of " + nameOfReplica(held[k]) +
                       " by the end of step " + text(step) + ", got " +
                       text(taken[k]));
    if (section != kBody || program.updates == Updates::Flush)
      return;
    for (size_t b = 0; step == 1 && b < values.size(); ++b) {
      const Value &before = found[b];
      Value later =
          before.replica == kNone ? before : before.later(count, perStep);
      if (values[b] != later)
        report.add(Rule::Weights, name + "the body to leave in buffer " +
                                      text(b) + " (" +
                                      nameOf(worker.buffers[b].kind()) +
                                      ") what it found there, one step later");
    }
    found = values;
  }

  void verifyEnd(const State &state, uint32_t buffer) {
    uint32_t replica = state.pipeline() * stages + state.stage();
    int64_t newest = taken[local(replica)];
    const Value &left = values[buffer];
    if (left.replica != replica || left.version != newest)
      report.add(
          Rule::Weights,
          "worker " + text(w) + " state of " + nameOfReplica(replica) +
              ": expected the newest " + nameOf(worker.buffers[buffer].kind()) +
              " at the end, after " + text(newest) + " updates, got those of " +
              nameOfReplica(left.replica) + " after " + text(left.version));
  }

  static std::string text(int64_t value) { return std::to_string(value); }

  const ProgramT &program;
  const Facts &facts;
  std::vector<uint64_t> &begins;
  Report &report;
  uint32_t w;
  const WorkerT &worker;
  uint32_t stages;
  int64_t count;              ///< micro-batches of a step
  int64_t perStep;            ///< updates of each stage
  std::vector<uint32_t> held; ///< replicas on this worker, ascending

  std::vector<Value> values;     ///< by buffer
  std::vector<Value> found;      ///< by buffer, at the end of the last body
  std::vector<int64_t> taken;    ///< updates, by held replica
  std::vector<Forward> forwards; ///< by held replica, then micro-batch

  // Where the walk is.
  int64_t step = 0;
  size_t section = 0;
  uint32_t i = 0;
};

} // namespace

void verifyWeights(const ProgramT &program, const Facts &facts,
                   Report &report) {
  std::vector<uint64_t> begins(facts.communicatorOf.size(), kUnknownBegin);
  for (const std::vector<Run> &runs : runsOf(program))
    for (uint32_t w = 0; w < program.workers.size() && report.empty(); ++w)
      WeightsVerifier(program, facts, begins, w, report).run(runs);
}

} // namespace chimera::program::verify
