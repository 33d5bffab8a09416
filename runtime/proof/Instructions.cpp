//===- Instructions.cpp - Each instruction by itself ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/Facts.h"
#include "runtime/proof/Signature.h"
#include "runtime/proof/Sizes.h"

#include <algorithm>

namespace chimera::program::verify {

namespace {

class InstructionVerifier {
public:
  InstructionVerifier(const ProgramT &program, const Facts &facts,
                      Report &report)
      : program(program), facts(facts), report(report), pieces(*facts.pieces),
        sizes(program, pieces),
        stages(static_cast<uint32_t>(program.stages.size())) {
    for (size_t opcode = 0; opcode <= size_t(Opcode::MAX); ++opcode)
      for (int form = 0; form < 8; ++form)
        signatures[opcode][form] =
            signatureOf(Opcode(opcode), form & kFirst, form & kLast,
                        form & kBegins, program.optimizer->clip_norm > 0);
  }

  void run() {
    for (w = 0; w < program.workers.size() && !report.full(); ++w) {
      worker = program.workers[w].get();
      for (section = 0; section < kSections; ++section) {
        Section range = sectionsOf(*worker)[section];
        end = range.end;
        uint32_t groupEnd = range.begin;
        for (i = range.begin; i < end && !report.full(); ++i)
          verifyOne(worker->instructions[i], groupEnd);
      }
    }
  }

private:
  void fail(const std::string &message) {
    report.add(Rule::Structure, w, i, message);
  }

  ValueKind kindOf(uint32_t buffer) const {
    return worker->buffers[buffer].kind();
  }

  void verifyOne(const Instruction &instruction, uint32_t &groupEnd) {
    Opcode opcode = instruction.opcode();
    if (opcode > Opcode::MAX || instruction.kind() > ValueKind::MAX)
      return fail("unknown opcode or kind");
    if (!program.locations.empty() && instruction.location() != kNone &&
        instruction.location() >= program.locations.size())
      return fail("expected a location below " +
                  text(program.locations.size()) + ", got " +
                  text(instruction.location()));
    bool isPost = opcode == Opcode::PostSend || opcode == Opcode::PostRecv;
    if (i < groupEnd && !isPost)
      return fail("expected a post, as part of the group before it");
    if (!verifyOperandRange(instruction))
      return;
    switch (opcode) {
    case Opcode::Group:
      if (instruction.target() == 0 || instruction.target() >= end - i)
        return fail("expected that many posts after it in its section, got " +
                    text(end - i - 1) + " instructions");
      groupEnd = i + 1 + instruction.target();
      [[fallthrough]];
    case Opcode::Wait:
      if (instruction.operands() + instruction.results() != 0)
        fail("expected no operands and results, got " +
             text(instruction.operands()) + " and " +
             text(instruction.results()));
      return;
    case Opcode::PostSend:
    case Opcode::PostRecv:
      return verifyPost(instruction);
    case Opcode::AllReduceStart:
      return verifyStart(instruction);
    case Opcode::Load:
      return verifyLoad(instruction);
    case Opcode::Copy:
      return verifyCopy(instruction);
    case Opcode::Rename:
      return verifyRename(instruction);
    case Opcode::Split:
      return verifyPieces(instruction, operandsOf(*worker, instruction),
                          resultsOf(*worker, instruction));
    case Opcode::Join:
      return verifyPieces(instruction, resultsOf(*worker, instruction),
                          operandsOf(*worker, instruction));
    default:
      return verifyCompute(instruction);
    }
  }

  bool verifyOperandRange(const Instruction &instruction) {
    uint64_t first = instruction.first_operand();
    uint64_t last = first + instruction.operands() + instruction.results();
    if (last == first)
      return true;
    if (last > worker->operands.size()) {
      fail("expected operands inside the pool of " +
           text(worker->operands.size()) + ", got [" + text(first) + ", " +
           text(last) + ")");
      return false;
    }
    for (uint64_t o = first; o < last; ++o)
      if (worker->operands[o] >= worker->buffers.size()) {
        fail("expected buffers below " + text(worker->buffers.size()) +
             ", got " + text(worker->operands[o]));
        return false;
      }
    return true;
  }

  bool verifyReplica(const Instruction &instruction) {
    if (instruction.pipeline() >= program.pipelines.size()) {
      fail("expected a pipeline below " + text(program.pipelines.size()) +
           ", got " + text(instruction.pipeline()));
      return false;
    }
    if (instruction.stage() >= stages) {
      fail("expected a stage below " + text(stages) + ", got " +
           text(instruction.stage()));
      return false;
    }
    return true;
  }

  bool verifyPlacement(const Instruction &instruction) {
    if (!verifyReplica(instruction))
      return false;
    uint32_t holder =
        program.pipelines[instruction.pipeline()]->workers[instruction.stage()];
    if (holder == w)
      return true;
    fail("this stage is on worker " + text(holder));
    return false;
  }

  /// The micro-batches that a label must name: those of one forward, the piece
  /// of one backward, or one micro-batch.
  enum class Covers { Forward, Piece, MicroBatch };

  bool verifyLabel(const Instruction &instruction, Covers covers) {
    uint64_t first = instruction.micro_batch();
    uint64_t last = first + instruction.micro_batches();
    // Without a flush, a body also has actions of the next step. Their
    // micro-batches are N + m, where N is program.micro_batches.
    bool includesNextStep =
        program.updates != Updates::Flush && section == kBody;
    uint64_t most =
        program.micro_batches * (includesNextStep ? uint64_t(2) : 1);
    if (last == first || last > most) {
      fail("expected micro-batches inside [0, " + text(most) + "), got [" +
           text(first) + ", " + text(last) + ")");
      return false;
    }
    if (pieces.pipelineOf(instruction.micro_batch()) !=
        instruction.pipeline()) {
      fail("expected micro-batches of pipeline " +
           text(instruction.pipeline()) + ", got one of pipeline " +
           text(pieces.pipelineOf(instruction.micro_batch())));
      return false;
    }
    if (instruction.part() >= instruction.parts()) {
      fail("expected a part below the number of parts, got part " +
           text(instruction.part()) + " of " + text(instruction.parts()));
      return false;
    }
    Range range = pieces.forwardOf(instruction.micro_batch());
    uint32_t parts = pieces.partsOf(instruction.micro_batch());
    if (covers == Covers::Forward) {
      uint32_t offset = instruction.micro_batch() -
                        pieces.microBatchInStep(instruction.micro_batch());
      if (first != range.first + offset ||
          instruction.micro_batches() != range.count ||
          instruction.parts() != 1) {
        fail("expected the micro-batches of one forward of its pipeline, " +
             text(range.count) + " from micro-batch " +
             text(range.first + offset) + ", got " +
             text(instruction.micro_batches()) + " from " + text(first) +
             " in " + text(instruction.parts()) + " parts");
        return false;
      }
      return true;
    }
    if (covers == Covers::MicroBatch)
      parts = 1;
    if (instruction.micro_batches() != 1 || instruction.parts() != parts) {
      fail(std::string("expected one micro-batch") +
           (parts > 1 ? ", or one of " + text(parts) + " parts of it," : "") +
           " in each backward of its pipeline, got " +
           text(instruction.micro_batches()) + " in " +
           text(instruction.parts()) + " parts");
      return false;
    }
    return true;
  }

  /// Whether a buffer has the size that `label` requires, and a valid offset.
  bool verifyBytes(const Instruction &label, ValueKind kind, uint32_t stage,
                   uint32_t buffer) {
    std::string fault =
        sizes.faultOf(label, kind, stage, worker->buffers[buffer]);
    if (!fault.empty())
      fail(fault);
    return fault.empty();
  }

  /// Whether the instruction has this number of operands and results.
  bool verifyCounts(const Instruction &instruction, uint32_t operands,
                    uint32_t results) {
    if (instruction.operands() == operands && instruction.results() == results)
      return true;
    fail("expected " + text(operands) + " operands and " + text(results) +
         " results, got " + text(instruction.operands()) + " and " +
         text(instruction.results()));
    return false;
  }

  bool verifyKind(const Instruction &instruction, uint32_t buffer) {
    if (kindOf(buffer) == instruction.kind())
      return true;
    fail(std::string("expected a buffer of ") + nameOf(instruction.kind()) +
         ", got one of " + nameOf(kindOf(buffer)));
    return false;
  }

  void verifyLoad(const Instruction &instruction) {
    if (instruction.kind() != ValueKind::Tokens &&
        instruction.kind() != ValueKind::Labels)
      return fail(std::string("expected tokens or labels, got ") +
                  nameOf(instruction.kind()));
    if (!verifyPlacement(instruction) ||
        !verifyLabel(instruction, Covers::Forward) ||
        !verifyCounts(instruction, 0, 1))
      return;
    uint32_t buffer = resultsOf(*worker, instruction)[0];
    if (verifyKind(instruction, buffer))
      verifyBytes(instruction, instruction.kind(), instruction.stage(), buffer);
  }

  void verifyPost(const Instruction &instruction) {
    bool sends = instruction.opcode() == Opcode::PostSend;
    if (instruction.target() >= program.workers.size())
      return fail("expected a peer below " + text(program.workers.size()) +
                  ", got " + text(instruction.target()));
    if (instruction.target() == w)
      return fail("expected another worker as peer, got itself");
    if (isStash(instruction.kind()))
      return fail("a stash cannot be sent");
    if (!verifyReplica(instruction) || !verifyMessageLabel(instruction) ||
        !verifyCounts(instruction, sends, !sends))
      return;
    uint32_t buffer = worker->operands[instruction.first_operand()];
    if (!verifyKind(instruction, buffer))
      return;
    // A message of a weight gradient can be a piece of the gradient. The label
    // does not name the piece, so its size is not known.
    if (instruction.kind() == ValueKind::WeightGradient)
      return;
    // The label of a message of a gradient names the stage that computes it as
    // its input gradient. So the message crosses the boundary before this
    // stage.
    bool back = instruction.kind() == ValueKind::Gradient;
    if (back && instruction.stage() == 0)
      return fail("the first stage makes no gradient to send");
    verifyBytes(instruction, instruction.kind(), instruction.stage() - back,
                buffer);
  }

  bool verifyMessageLabel(const Instruction &instruction) {
    switch (instruction.kind()) {
    case ValueKind::Tokens:
    case ValueKind::Labels:
    case ValueKind::Activation:
      return verifyLabel(instruction, Covers::Forward);
    case ValueKind::Gradient:
      return verifyLabel(instruction, Covers::Piece);
    case ValueKind::Loss:
      return verifyLabel(instruction, Covers::MicroBatch);
    default:
      return true;
    }
  }

  void verifyStart(const Instruction &instruction) {
    uint32_t id = instruction.target();
    if (id >= program.communicators.size())
      return fail("expected a communicator below " +
                  text(program.communicators.size()) + ", got " + text(id));
    const CommunicatorT &communicator = *program.communicators[id];
    if (instruction.kind() != communicator.kind)
      return fail(std::string("expected ") + nameOf(communicator.kind) +
                  ", as the communicator has, got " +
                  nameOf(instruction.kind()));
    uint32_t stage = communicator.contributions.front().stage();
    if (communicator.kind == ValueKind::WeightGradient &&
        instruction.stage() != stage)
      return fail("expected the communicator's stage " + text(stage) +
                  ", got " + text(instruction.stage()));
    // Check the bucket in the label only for gradients: an all-reduce of losses
    // has no label.
    if (communicator.kind == ValueKind::WeightGradient &&
        instruction.micro_batch() >=
            std::max<uint32_t>(1, instruction.micro_batches()))
      return fail("expected a bucket below the number of buckets, got " +
                  text(instruction.micro_batch()) + " of " +
                  text(instruction.micro_batches()));
    const Member *member = facts.memberOf(id, w);
    if (!member)
      return fail("this worker contributes nothing to communicator " +
                  text(id));
    if (!verifyCounts(instruction, member->contributions.size(), 1))
      return;
    uint32_t sum = resultsOf(*worker, instruction)[0];
    if (!verifyKind(instruction, sum))
      return;
    for (uint32_t buffer : operandsOf(*worker, instruction)) {
      if (!verifyKind(instruction, buffer))
        return;
      if (worker->buffers[buffer].bytes() != worker->buffers[sum].bytes())
        return fail("expected contributions of the sum's " +
                    text(worker->buffers[sum].bytes()) + " bytes, got " +
                    text(worker->buffers[buffer].bytes()));
    }
  }

  void verifyCompute(const Instruction &instruction) {
    Opcode opcode = instruction.opcode();
    if (!verifyPlacement(instruction))
      return;
    bool ofMicroBatches = opcode != Opcode::ZeroGradient &&
                          opcode != Opcode::SquaredNorm &&
                          opcode != Opcode::OptimizerStep;
    if (ofMicroBatches &&
        !verifyLabel(instruction, opcode == Opcode::Forward ? Covers::Forward
                                                            : Covers::Piece))
      return;
    int form = (instruction.stage() == 0 ? kFirst : 0) |
               (instruction.stage() + 1u == stages ? kLast : 0) |
               (beginsGradientSum(instruction) ? kBegins : 0);
    const Signature &signature = signatures[size_t(opcode)][form];
    std::string fault = faultOf(*worker, instruction, signature, form & kLast);
    if (!fault.empty())
      return fail(fault);
    if (!verifySizes(instruction))
      return;
    if (opcode == Opcode::OptimizerStep)
      verifyUpdate(instruction);
  }

  void verifyUpdate(const Instruction &instruction) {
    bool each = program.updates == Updates::EachMicroBatch;
    uint32_t count = each ? 1 : program.micro_batches;
    if (instruction.micro_batches() != count ||
        instruction.micro_batch() > program.micro_batches - count)
      fail(
          "expected the label of " +
          (each ? "one micro-batch" : "all " + text(count) + " micro-batches") +
          " of its step, got [" + text(instruction.micro_batch()) + ", " +
          text(uint64_t(instruction.micro_batch()) +
               instruction.micro_batches()) +
          ")");
  }

  /// Checks that the pieces of a split or a join are contiguous and have
  /// together the same bytes of the arena as the whole.
  void verifyPieces(const Instruction &instruction,
                    std::span<const uint32_t> whole,
                    std::span<const uint32_t> pieces) {
    if (!verifyPlacement(instruction))
      return;
    if (whole.size() != 1 || pieces.size() < 2)
      return fail("expected a whole and at least two pieces, got " +
                  text(whole.size()) + " and " + text(pieces.size()));
    const Buffer &place = worker->buffers[whole[0]];
    uint64_t next = place.offset(), end = place.offset() + place.bytes();
    for (uint32_t buffer : pieces) {
      const Buffer &piece = worker->buffers[buffer];
      if (piece.kind() != ValueKind::WeightGradient || piece.bytes() == 0 ||
          piece.offset() != next || piece.bytes() > end - next)
        return failPieces(place, buffer, next);
      next += piece.bytes();
    }
    if (next != end || place.kind() != ValueKind::WeightGradient)
      failPieces(place, whole[0], next);
  }

  void failPieces(const Buffer &whole, uint32_t buffer, uint64_t next) {
    const Buffer &found = worker->buffers[buffer];
    fail("expected pieces that fill the weight gradient at bytes " +
         text(whole.offset()) + " to " + text(whole.offset() + whole.bytes()) +
         ", got " + text(found.bytes()) + " bytes of " + nameOf(found.kind()) +
         " at " + text(found.offset()) + " (buffer " + text(buffer) +
         ") where " + text(next) + " is next");
  }

  /// Whether a value can move from one buffer to the other: the buffers must
  /// have the same kind and size.
  bool verifyPair(uint32_t operand, uint32_t result) {
    const Buffer &from = worker->buffers[operand];
    const Buffer &to = worker->buffers[result];
    if (from.kind() == to.kind() && from.bytes() == to.bytes())
      return true;
    fail("expected buffers of one kind and size, got " + text(from.bytes()) +
         " bytes of " + nameOf(from.kind()) + " in buffer " + text(operand) +
         " and " + text(to.bytes()) + " of " + nameOf(to.kind()) +
         " in buffer " + text(result));
    return false;
  }

  void verifyCopy(const Instruction &instruction) {
    if (!verifyPlacement(instruction) || !verifyCounts(instruction, 1, 1))
      return;
    uint32_t from = operandsOf(*worker, instruction)[0];
    uint32_t to = resultsOf(*worker, instruction)[0];
    if (!verifyPair(from, to) || !verifyKind(instruction, from))
      return;
    if (isStash(kindOf(from)))
      fail("a stash cannot be copied");
    else if (from == to)
      fail("expected a copy apart from its original, got buffer " + text(to) +
           " twice");
  }

  void verifyRename(const Instruction &instruction) {
    std::span<const uint32_t> from = operandsOf(*worker, instruction);
    std::span<const uint32_t> to = resultsOf(*worker, instruction);
    if (i + 1 != end)
      return fail("expected a rename as the last instruction of its section, "
                  "got " +
                  text(end - i - 1) + " after it");
    if (from.empty())
      return fail("expected operands, got none");
    if (!verifyCounts(instruction, instruction.operands(),
                      instruction.operands()))
      return;
    for (size_t k = 0; k < from.size(); ++k)
      if (!verifyPair(from[k], to[k]))
        return;
    std::vector<uint32_t> left(from.begin(), from.end());
    std::vector<uint32_t> right(to.begin(), to.end());
    std::ranges::sort(left);
    std::ranges::sort(right);
    auto twice = std::ranges::adjacent_find(left);
    if (twice != left.end())
      return fail("expected each buffer once, got buffer " + text(*twice) +
                  " twice");
    auto [only, other] = std::ranges::mismatch(left, right);
    if (only != left.end())
      fail("expected the same buffers in another order, got buffer " +
           text(std::min(*only, *other)) + " on one side only");
  }

  /// Whether the operands and results of a computation have the sizes that its
  /// micro-batches and its stage require.
  bool verifySizes(const Instruction &instruction) {
    const uint32_t *buffers =
        worker->operands.data() + instruction.first_operand();
    uint32_t operands = instruction.operands();
    for (uint32_t k = 0; k < operands + instruction.results(); ++k) {
      ValueKind kind = kindOf(buffers[k]);
      // An activation that a stage reads, and an input gradient that it makes,
      // are values at the boundary before the stage.
      uint32_t before = kind == ValueKind::Activation ? k < operands
                        : kind == ValueKind::Gradient ? k >= operands
                                                      : 0;
      if (!verifyBytes(instruction, kind, instruction.stage() - before,
                       buffers[k]))
        return false;
    }
    return true;
  }

  const ProgramT &program;
  const Facts &facts;
  Report &report;
  const BackwardPieces &pieces;
  Sizes sizes;
  uint32_t stages;
  /// Bits of the second index of `signatures`: whether the stage is the first
  /// or the last, and whether the instruction begins a gradient sum. The first
  /// index is the opcode.
  enum Form { kFirst = 1, kLast = 2, kBegins = 4 };
  Signature signatures[size_t(Opcode::MAX) + 1][8];

  // The current instruction.
  uint32_t w = 0;
  const WorkerT *worker = nullptr;
  size_t section = 0;
  uint32_t i = 0;
  uint32_t end = 0;
};

} // namespace

void verifyInstructions(const ProgramT &program, const Facts &facts,
                        Report &report) {
  InstructionVerifier(program, facts, report).run();
}

} // namespace chimera::program::verify
