//===- Values.cpp - Whether operands are the right values -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The check of values. It follows the instructions of each worker in execution
// order, and records for every buffer which tokens, labels, activation,
// gradient, stash or loss the buffer has. A loss is complete after the
// backwards that take it, because they may add to it (runtime/model/Stage.h).
// Each send must send the value that its label names, and the matching receive
// has the same label. So each worker can be checked separately.
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/Facts.h"

namespace chimera::program::verify {

namespace {

/// Identifies a value by one number. It is made from the kind of the value, the
/// stage that made it, its piece (BackwardPieces.h), and one bit: whether the
/// value belongs to the next step instead of the current one.
using Value = uint64_t;

/// The contents of a buffer that has no value of these kinds, or a value of an
/// earlier step.
constexpr Value kUnknown = UINT64_MAX;

class ValuesVerifier {
public:
  ValuesVerifier(const ProgramT &program, const Facts &facts, uint32_t w,
                 Report &report)
      : facts(facts), pieces(*facts.pieces), recomputed(facts.recomputed),
        report(report), program(program), worker(*program.workers[w]), w(w),
        stages(program.stages.size()) {}

  void run(const std::vector<SectionRun> &runs) {
    values.assign(worker.buffers.size(), kUnknown);
    missing.assign(worker.buffers.size(), 0);
    for (const SectionRun &part : runs) {
      Section range = sectionsOf(worker)[part.section];
      for (i = range.begin; i < range.end && !report.full(); ++i)
        step(worker.instructions[i]);
      if (program.updates == Updates::Flush || part.section != kBody)
        continue;
      // Values of the next step become values of the current step. Values of
      // the current step become unknown: labels cannot name values of earlier
      // steps. So a third body would begin with the same values as the second
      // body.
      for (Value &value : values)
        value = value == kUnknown || value % 2 == 0 ? kUnknown : value - 1;
    }
  }

private:
  Value valueOf(ValueKind kind, uint64_t stage, uint32_t m,
                uint32_t part = 0) const {
    uint64_t piece = pieces.pieceNumberOf(m, part);
    bool isNext = m >= program.micro_batches;
    return (((static_cast<uint64_t>(kind) * stages + stage) *
                 pieces.pieceCount() +
             piece) *
            2) +
           isNext;
  }
  /// The value of `kind` that covers all micro-batches of a forward. `m` is one
  /// of these micro-batches.
  Value wholeOf(ValueKind kind, uint64_t stage, uint32_t m) const {
    uint32_t first = pieces.forwardOf(m).first;
    return valueOf(kind, stage,
                   m < program.micro_batches ? first
                                             : first + program.micro_batches);
  }
  Value lossOf(uint32_t m) const {
    return valueOf(ValueKind::Loss, stages - 1, m);
  }
  Value pieceOf(ValueKind kind, uint64_t stage,
                const Instruction &instruction) const {
    return valueOf(kind, stage, instruction.micro_batch(), instruction.part());
  }
  /// The value that the label of a post names. kUnknown for weights, gradient
  /// sums and optimizer state.
  Value labelled(const Instruction &post) const {
    switch (post.kind()) {
    case ValueKind::Tokens:
      return wholeOf(post.kind(), 0, post.micro_batch());
    case ValueKind::Labels:
      return wholeOf(post.kind(), stages - 1, post.micro_batch());
    case ValueKind::Activation:
      return wholeOf(post.kind(), post.stage(), post.micro_batch());
    case ValueKind::Gradient:
      return pieceOf(post.kind(), post.stage(), post);
    case ValueKind::Loss:
      return lossOf(post.micro_batch());
    default:
      return kUnknown;
    }
  }

  void step(const Instruction &instruction) {
    std::span<const uint32_t> in = operandsOf(worker, instruction);
    std::span<const uint32_t> out = resultsOf(worker, instruction);
    uint64_t s = instruction.stage();
    switch (instruction.opcode()) {
    case Opcode::Group:
    case Opcode::Wait:
      return;
    case Opcode::Load:
    case Opcode::PostRecv:
      values[out[0]] = labelled(instruction);
      missing[out[0]] = 0;
      return;
    case Opcode::PostSend:
      if (instruction.kind() == ValueKind::Loss)
        expectLoss(in[0], instruction.micro_batch());
      else if (Value value = labelled(instruction); value != kUnknown)
        expect(in[0], value);
      return;
    case Opcode::Forward:
      verifyInputs(instruction, in);
      return noteForward(instruction, out);
    case Opcode::Recompute:
      verifyInputs(instruction, in);
      values[out[0]] = pieceOf(ValueKind::Stash, s, instruction);
      return;
    case Opcode::Backward:
      verifyGradient(instruction, in);
      values[out[0]] = kUnknown;
      return noteGradient(instruction, out);
    case Opcode::InputGradient:
      verifyGradient(instruction, in);
      values[out[0]] = pieceOf(ValueKind::WeightStash, s, instruction);
      return noteGradient(instruction, out);
    case Opcode::WeightGradient:
      expect(in[0], pieceOf(ValueKind::WeightStash, s, instruction));
      values[out[0]] = kUnknown;
      return;
    case Opcode::AllReduceStart:
      verifyContributions(instruction, in);
      values[out[0]] = kUnknown;
      return;
    case Opcode::Copy:
      values[out[0]] = values[in[0]];
      return;
    case Opcode::Rename:
      return rename(worker, instruction, values);
    case Opcode::ZeroGradient:
    case Opcode::SquaredNorm:
    case Opcode::OptimizerStep:
    case Opcode::Split:
    case Opcode::Join:
      for (uint32_t buffer : out)
        values[buffer] = kUnknown;
      return;
    }
  }

  void expect(uint32_t buffer, Value value) {
    if (values[buffer] != value)
      report.add(Rule::Values, w, i,
                 "expected " + nameOf(value) + ", got " +
                     nameOf(values[buffer]) + " (buffer " + text(buffer) + ")");
  }

  /// Checks that a buffer has the complete loss of a micro-batch.
  void expectLoss(uint32_t buffer, uint32_t m) {
    expect(buffer, lossOf(m));
    if (values[buffer] == lossOf(m) && missing[buffer] > 0)
      report.add(Rule::Values, w, i,
                 "expected " + nameOf(lossOf(m)) +
                     " after all backwards that take it, got it before " +
                     text(missing[buffer]) + " of them (buffer " +
                     text(buffer) + ")");
  }

  bool isLast(const Instruction &instruction) const {
    return instruction.stage() + size_t(1) == stages;
  }

  /// Checks the tokens or the activation, and the labels, that a forward or a
  /// recompute reads.
  void verifyInputs(const Instruction &instruction,
                    std::span<const uint32_t> in) {
    uint32_t s = instruction.stage(), m = instruction.micro_batch();
    expect(in[0], s == 0 ? wholeOf(ValueKind::Tokens, 0, m)
                         : wholeOf(ValueKind::Activation, s - 1, m));
    if (isLast(instruction))
      expect(in[2], wholeOf(ValueKind::Labels, s, m));
  }

  void noteForward(const Instruction &instruction,
                   std::span<const uint32_t> out) {
    uint32_t s = instruction.stage(), first = instruction.micro_batch();
    size_t next = 0;
    if (!isLast(instruction))
      values[out[next++]] = wholeOf(ValueKind::Activation, s, first);
    for (uint32_t k = 0; isLast(instruction) && k < instruction.micro_batches();
         ++k) {
      missing[out[next]] = pieces.partsOf(first + k);
      values[out[next++]] = lossOf(first + k);
    }
    for (uint32_t m = first; m < first + instruction.micro_batches(); ++m)
      for (uint32_t part = 0; part < pieces.partsOf(m); ++part)
        if (recomputed.empty() || !recomputed[s * pieces.pieceCount() +
                                              pieces.pieceNumberOf(m, part)])
          values[out[next++]] = valueOf(ValueKind::Stash, s, m, part);
  }

  void verifyGradient(const Instruction &instruction,
                      std::span<const uint32_t> in) {
    uint32_t s = instruction.stage();
    expect(in[0], pieceOf(ValueKind::Stash, s, instruction));
    if (!isLast(instruction))
      return expect(in[1], pieceOf(ValueKind::Gradient, s + 1, instruction));
    expect(in[1], lossOf(instruction.micro_batch()));
    if (missing[in[1]] > 0)
      --missing[in[1]];
  }

  void noteGradient(const Instruction &instruction,
                    std::span<const uint32_t> out) {
    if (uint32_t s = instruction.stage(); s > 0)
      values[out[1]] = pieceOf(ValueKind::Gradient, s, instruction);
  }

  /// Checks the losses in an all-reduce: the operands must be in the order of
  /// the communicator's contributions. Their keys are micro-batches.
  void verifyContributions(const Instruction &start,
                           std::span<const uint32_t> in) {
    if (start.kind() != ValueKind::Loss)
      return;
    const auto &all = program.communicators[start.target()]->contributions;
    size_t next = 0;
    for (uint32_t own : facts.memberOf(start.target(), w)->contributions)
      expectLoss(in[next++], all[own].key());
  }

  std::string nameOf(Value value) const {
    if (value == kUnknown)
      return "an unknown value (of another kind or step)";
    bool isNext = value % 2;
    uint64_t piece = value / 2 % pieces.pieceCount();
    uint64_t stage = value / 2 / pieces.pieceCount() % stages;
    auto kind =
        static_cast<ValueKind>(value / 2 / pieces.pieceCount() / stages);
    uint32_t m = pieces.microBatchOf(piece);
    std::string name = std::string("the ") + program::nameOf(kind);
    bool isPiece = isStash(kind) || kind == ValueKind::Gradient;
    if (isPiece || kind == ValueKind::Activation)
      name += " of stage " + text(stage);
    else
      name += " of";
    name += " micro-batch " + text(m);
    if (isPiece && pieces.partsOf(m) > 1)
      name += " part " + text(piece - pieces.pieceNumberOf(m));
    return isNext ? name + " of the next step" : name;
  }

  const Facts &facts;
  const BackwardPieces &pieces;
  const std::vector<bool> &recomputed;
  Report &report;
  const ProgramT &program;
  const WorkerT &worker;
  uint32_t w;
  uint64_t stages;
  std::vector<Value> values; ///< by buffer
  /// By buffer: if it has a loss, the number of backwards that will take it.
  std::vector<uint32_t> missing;
  uint32_t i = 0;
};

} // namespace

void verifyValues(const ProgramT &program, const Facts &facts, Report &report) {
  for (const std::vector<SectionRun> &runs : runsOf(program))
    for (uint32_t w = 0; w < program.workers.size() && report.empty(); ++w)
      ValuesVerifier(program, facts, w, report).run(runs);
}

} // namespace chimera::program::verify
