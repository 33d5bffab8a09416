//===- Weights.cpp - Versions of weights, and their updates ---------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The check of weights and updates. It follows the instructions of each worker
// in execution order, and records for every buffer of weights or optimizer
// state the number of updates that its contents have had. GradientSums
// (Gradients.h) does the same for gradient sums, and SquaredNorms (Norms.h) for
// squared norms. Micro-batches are numbered
// over the whole run: with N micro-batches per step, micro-batch m of step k
// has the number k*N+m.
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/Norms.h"

#include <algorithm>

namespace chimera::program::verify {

namespace {

/// The contents of a buffer of weights or of optimizer state.
struct WeightsValue {
  uint32_t replica = kNone; ///< pipeline * stages + stage; kNone: not known
  int64_t version = -1;     ///< the number of updates that it has had

  WeightsValue oneStepLater(int64_t updates) const {
    return {replica, version + updates};
  }
  bool operator==(const WeightsValue &) const = default;
};

class WeightsVerifier {
public:
  WeightsVerifier(const ProgramT &program, const Facts &facts,
                  GradientSums::BucketOffsets &bucketOffsets, uint32_t w,
                  Report &report)
      : program(program), pieces(*facts.pieces), report(report), w(w),
        worker(*program.workers[w]),
        stages(static_cast<uint32_t>(program.stages.size())),
        count(program.micro_batches),
        perStep(static_cast<int64_t>(updatesPerStep(program))),
        sums(program, facts, bucketOffsets, w, report),
        norms(program, facts, sums, w, report) {
    // The check of a worker needs memory only for the replicas of this worker:
    // `held` has them, and their index in `held` is the index in other lists.
    for (const State &state : worker.states)
      held.push_back(state.pipeline() * stages + state.stage());
    std::ranges::sort(held);
    for (uint32_t replica : held) {
      firstForward.push_back(forwards.size());
      forwards.resize(
          forwards.size() +
          2 * program.pipelines[replica / stages]->micro_batches.size());
    }
  }

  void run(const std::vector<SectionRun> &runs) {
    values.assign(worker.buffers.size(), WeightsValue());
    sums.clear();
    norms.clear();
    taken.assign(held.size(), 0);
    std::ranges::fill(forwards, Forward());
    for (const State &state : worker.states) {
      for (uint32_t buffer : {state.weights(), state.optimizer_state()}) {
        values[buffer].replica = state.pipeline() * stages + state.stage();
        values[buffer].version = 0;
      }
    }
    for (const SectionRun &part : runs) {
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
  /// The newest forward of a micro-batch, and the version of the weights that
  /// it read. Each micro-batch has two entries, one for even steps and one for
  /// odd steps, because the forward of the next step may come before the weight
  /// gradient of this step.
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
  /// The index of a replica in `held`. Requires a replica of this worker.
  size_t local(uint32_t replica) const {
    return std::ranges::lower_bound(held, replica) - held.begin();
  }
  int64_t numberOf(const Instruction &instruction) const {
    return step * count + instruction.micro_batch();
  }
  /// The forward of the k-th micro-batch of the instruction.
  Forward &forwardOf(const Instruction &instruction, uint32_t k = 0) {
    return forwards[firstForward[local(replicaOf(instruction))] +
                    2 * pieces.indexInPipeline(instruction.micro_batch() + k) +
                    (numberOf(instruction) + k) / count % 2];
  }
  std::string name(uint32_t replica) const {
    return nameOfReplica(replica, stages);
  }

  void verifyOne(const Instruction &instruction) {
    std::span<const uint32_t> in = operandsOf(worker, instruction);
    std::span<const uint32_t> out = resultsOf(worker, instruction);
    switch (instruction.opcode()) {
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
        followSums(instruction);
      return;
    case Opcode::WeightGradient:
      if (verifyRead(instruction, values[in[1]]))
        followSums(instruction);
      return;
    case Opcode::OptimizerStep:
      return verifyUpdate(instruction, in, out);
    case Opcode::PostRecv:
      values[out[0]] = WeightsValue();
      return followSums(instruction);
    case Opcode::Copy:
      values[out[0]] = values[in[0]];
      return followSums(instruction);
    case Opcode::Rename:
      rename(worker, instruction, values);
      return followSums(instruction);
    default:
      return followSums(instruction);
    }
  }

  void followSums(const Instruction &instruction) {
    norms.follow(instruction, i, step);
    sums.follow(instruction, i, step);
  }

  /// Checks that `weights` belong to the replica that the label names, and are
  /// as old as its `weight_version`.
  bool verifyLabel(const Instruction &instruction,
                   const WeightsValue &weights) {
    uint32_t replica = replicaOf(instruction);
    if (weights.replica != replica) {
      fail("expected the weights of " + name(replica) + ", got those of " +
           name(weights.replica));
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

  void verifyForward(const Instruction &instruction,
                     const WeightsValue &weights) {
    if (!verifyLabel(instruction, weights))
      return;
    // All micro-batches of an instruction belong to the same step, so it is
    // enough to look at the first one.
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

  /// Checks that the forward of the instruction's micro-batch came before it,
  /// and that the forward read the same version of the weights.
  bool verifyRead(const Instruction &instruction, const WeightsValue &weights) {
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

  void verifyUpdate(const Instruction &instruction,
                    std::span<const uint32_t> in,
                    std::span<const uint32_t> out) {
    uint32_t replica = replicaOf(instruction);
    const WeightsValue weights = values[in[0]];
    int64_t &newest = taken[local(replica)];
    if (weights.replica != replica || weights.version != newest)
      return fail("expected the newest weights of " + name(replica) +
                  ", after " + text(newest) + " updates, got those of " +
                  name(weights.replica) + " after " + text(weights.version));
    const WeightsValue &state = values[in[1]];
    if (state.replica != replica || state.version != newest)
      return fail("expected the newest optimizer state of " + name(replica) +
                  ", after " + text(newest) + " updates, got that of " +
                  name(state.replica) + " after " + text(state.version));
    auto update =
        static_cast<int64_t>(indexOfUpdate(program, instruction, step));
    if (update != newest)
      return fail("expected the label of the update after " + text(newest) +
                  " others, got that of the one after " + text(update));
    if (std::string fault = sums.faultOf(instruction, in[2], update, step);
        !fault.empty())
      return fail(fault);
    if (in.size() > 3)
      if (std::string fault = norms.faultOf(in[3], update); !fault.empty())
        return fail(fault);
    WeightsValue result = weights;
    result.version = ++newest;
    values[out[0]] = values[out[1]] = result;
  }

  /// Reports wrong contents of buffers at the end of a section. If the section
  /// ends with a rename, the violation is reported at the rename, because the
  /// rename moved values between buffers.
  void failAtEnd(const std::string &message) {
    uint32_t end = sectionsOf(worker)[section].end;
    bool renames =
        end > 0 && worker.instructions[end - 1].opcode() == Opcode::Rename;
    report.addAt(Rule::Weights, w, renames ? end - 1 : kNone, message);
  }

  void verifySectionEnd() {
    int64_t expected = section == kPrologue ? 0 : (step + 1) * perStep;
    std::string name = "worker " + text(w) + ": expected ";
    for (size_t k = 0; k < held.size(); ++k)
      if (taken[k] != expected)
        failAtEnd(name +
                  countWithNoun(static_cast<uint64_t>(expected), "update") +
                  " of " + this->name(held[k]) + " by the end of step " +
                  text(step) + ", got " + text(taken[k]));
    if (section != kBody || program.updates == Updates::Flush)
      return;
    for (size_t b = 0; step == 1 && b < values.size(); ++b) {
      const WeightsValue &value = found[b];
      const GradientSum &sum = foundSums[b];
      if (values[b] ==
              (value.replica == kNone ? value : value.oneStepLater(perStep)) &&
          sums.byBuffer()[b] ==
              (sum.replica == kNone ? sum : sum.oneStepLater(count, perStep)))
        continue;
      failAtEnd(name + "the body to leave in buffer " + text(b) + " (" +
                nameOf(worker.buffers[b].kind()) +
                ") what it found there, one step later");
    }
    found = values;
    foundSums = sums.byBuffer();
  }

  void verifyEnd(const State &state, uint32_t buffer) {
    uint32_t replica = state.pipeline() * stages + state.stage();
    int64_t newest = taken[local(replica)];
    const WeightsValue &left = values[buffer];
    if (left.replica != replica || left.version != newest)
      failAtEnd("worker " + text(w) + " state of " + name(replica) +
                ": expected the newest " +
                nameOf(worker.buffers[buffer].kind()) + " at the end, after " +
                text(newest) + " updates, got those of " + name(left.replica) +
                " after " + text(left.version));
  }

  static std::string text(int64_t value) { return std::to_string(value); }

  const ProgramT &program;
  const BackwardPieces &pieces;
  Report &report;
  uint32_t w;
  const WorkerT &worker;
  uint32_t stages;
  int64_t count;              ///< micro-batches of a step
  int64_t perStep;            ///< updates of each stage in a step
  std::vector<uint32_t> held; ///< replicas on this worker, ascending

  std::vector<WeightsValue> values; ///< by buffer
  GradientSums sums;
  SquaredNorms norms;
  // The contents of each buffer at the end of the previous body.
  std::vector<WeightsValue> found;
  std::vector<GradientSum> foundSums;
  std::vector<int64_t> taken; ///< number of updates so far, by index in `held`
  std::vector<size_t> firstForward; ///< in `forwards`, by index in `held`
  /// Ordered by index in `held`, then by micro-batch of the pipeline, then by
  /// whether the step is odd.
  std::vector<Forward> forwards;

  // The current instruction.
  int64_t step = 0;
  size_t section = 0;
  uint32_t i = 0;
};

} // namespace

void verifyWeights(const ProgramT &program, const Facts &facts,
                   Report &report) {
  GradientSums::BucketOffsets bucketOffsets =
      GradientSums::unknownOffsets(facts);
  for (const std::vector<SectionRun> &runs : runsOf(program))
    for (uint32_t w = 0; w < program.workers.size() && report.empty(); ++w)
      WeightsVerifier(program, facts, bucketOffsets, w, report).run(runs);
}

} // namespace chimera::program::verify
