//===- Actions.cpp - Whether every action exists once ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The check that each action exists once. Each stage must run each forward of
// its pipeline once. For each piece (BackwardPieces.h), it must run one
// backward, or one input gradient and one weight gradient. Each backward needs
// a stash, which its forward or a recompute makes. With a flush, the whole
// program is one step. Without a flush, the body is one step, and prologue and
// epilogue together are another.
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/Facts.h"

namespace chimera::program::verify {

namespace {

class ActionVerifier {
public:
  ActionVerifier(const ProgramT &program, Facts &facts, Report &report)
      : program(program), pieces(*facts.pieces), facts(facts), report(report),
        stages(program.stages.size()) {}

  void run() {
    if (!prepare() || !collect())
      return;
    verifyStep(Body);
    if (program.updates != Updates::Flush)
      verifyStep(Ends);
  }

private:
  enum Step { Body, Ends, Steps };

  /// The kinds of actions that were found for a piece in a step, as bits.
  enum Seen : uint8_t {
    Forward = 1,
    Backward = 2,
    InputGradient = 4,
    WeightGradient = 8,
    Recompute = 16
  };

  static uint8_t bitOf(Opcode opcode) {
    switch (opcode) {
    case Opcode::Forward:
      return Forward;
    case Opcode::Backward:
      return Backward;
    case Opcode::InputGradient:
      return InputGradient;
    case Opcode::WeightGradient:
      return WeightGradient;
    case Opcode::Recompute:
      return Recompute;
    default:
      return 0;
    }
  }

  /// Records all actions. Reports an action that occurs twice. Returns false if
  /// an error was reported.
  bool collect() {
    for (uint32_t w = 0; w < program.workers.size(); ++w) {
      const WorkerT &worker = *program.workers[w];
      for (uint32_t i = 0; i < worker.instructions.size(); ++i) {
        const Instruction &instruction = worker.instructions[i];
        uint8_t bit = bitOf(instruction.opcode());
        if (bit == 0)
          continue;
        bool inBody = i >= worker.body_begin && i < worker.body_end;
        Step step = inBody || program.updates == Updates::Flush ? Body : Ends;
        note(step, bit, w, i, instruction);
        if (report.full())
          return false;
      }
    }
    return report.empty();
  }

  bool prepare() {
    uint64_t cells = stages * pieces.pieceCount();
    uint64_t instructions = 0;
    for (const auto &each : program.workers)
      instructions += each->instructions.size();
    // Each cell (a piece on a stage) needs a backward, so a correct program has
    // at least as many instructions as cells. Check this before the allocation
    // of memory for the cells, because a small file could have a very large
    // number of them.
    if (cells > instructions) {
      report.add(Rule::Structure, "expected backwards for " + text(stages) +
                                      " stages and " +
                                      text(pieces.pieceCount()) +
                                      " micro-batches or parts of them, got " +
                                      text(instructions) + " instructions");
      return false;
    }
    for (Step step : {Body, Ends}) {
      seen[step].resize(cells);
      kept[step].resize(cells);
    }
    return true;
  }

  size_t cellOf(uint32_t stage, uint32_t m, uint32_t part) const {
    return stage * pieces.pieceCount() + pieces.pieceNumberOf(m, part);
  }

  void note(Step step, uint8_t bit, uint32_t w, uint32_t i,
            const Instruction &instruction) {
    size_t cell = cellOf(instruction.stage(), instruction.micro_batch(),
                         instruction.part());
    if (seen[step][cell] & bit)
      return report.add(Rule::Structure, w, i,
                        "expected each action once, got it a second time");
    seen[step][cell] |= bit;
    if (bit == Recompute) {
      if (facts.recomputed.empty())
        facts.recomputed.resize(seen[Body].size());
      facts.recomputed[cell] = true;
    } else if (bit == Forward) {
      bool last = instruction.stage() + size_t(1) == stages;
      kept[step][cell] =
          instruction.results() - (last ? instruction.micro_batches() : 1u);
    }
  }

  void verifyStep(Step step) {
    for (uint32_t s = 0; s < stages; ++s)
      for (uint32_t m = 0; m < program.micro_batches; ++m) {
        if (report.full())
          return;
        if (pieces.forwardOf(m).first == m)
          verifyForward(step, s, m);
        for (uint32_t part = 0; part < pieces.partsOf(m); ++part)
          verifyPiece(step, s, m, part);
      }
  }

  std::string name(uint32_t stage, uint32_t m) const {
    return "pipeline " + text(pieces.pipelineOf(m)) + " stage " + text(stage) +
           " micro-batch " + text(m);
  }

  void verifyForward(Step step, uint32_t stage, uint32_t m) {
    size_t cell = cellOf(stage, m, 0);
    if (!(seen[step][cell] & Forward))
      return report.add(Rule::Structure, "expected a forward of " +
                                             name(stage, m) + ", got none");
    Range range = pieces.forwardOf(m);
    uint32_t expected = 0;
    for (uint32_t k = range.first; k < range.first + range.count; ++k)
      for (uint32_t part = 0; part < pieces.partsOf(k); ++part)
        expected += facts.recomputed.empty() ||
                    !facts.recomputed[cellOf(stage, k, part)];
    if (kept[step][cell] != expected)
      report.add(Rule::Structure,
                 "expected the forward of " + name(stage, m) + " to make " +
                     text(expected) +
                     " stashes, one for each backward without a recompute, "
                     "got " +
                     text(kept[step][cell]));
  }

  void verifyPiece(Step step, uint32_t stage, uint32_t m, uint32_t part) {
    uint8_t found = seen[step][cellOf(stage, m, part)] & ~Forward & ~Recompute;
    if (found == Backward || found == (InputGradient | WeightGradient))
      return;
    std::string which = name(stage, m);
    if (pieces.partsOf(m) > 1)
      which += " part " + text(part);
    const char *got = found == 0                ? "none"
                      : found == InputGradient  ? "an input gradient alone"
                      : found == WeightGradient ? "a weight gradient alone"
                                                : "more";
    report.add(Rule::Structure,
               "expected a backward, or an input and a weight gradient, of " +
                   which + ", got " + got);
  }

  const ProgramT &program;
  const BackwardPieces &pieces;
  Facts &facts;
  Report &report;
  uint64_t stages;
  // Both lists are indexed by stage, then by piece.
  std::vector<uint8_t> seen[Steps];
  std::vector<uint32_t> kept[Steps]; ///< number of stashes, by first piece
};

} // namespace

void verifyActions(const ProgramT &program, Facts &facts, Report &report) {
  ActionVerifier(program, facts, report).run();
}

} // namespace chimera::program::verify
