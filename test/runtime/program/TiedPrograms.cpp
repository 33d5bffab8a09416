//===- TiedPrograms.cpp - Valid programs with tied parameters -------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/program/TiedPrograms.h"

#include "runtime/proof/Facts.h"

namespace chimera::program {
namespace {

using Buffers = std::vector<uint32_t>;

/// Changes how one worker reduces the gradients of the first and the last
/// stage, so that their tied pieces are summed together.
class TiedParameterAdder {
public:
  TiedParameterAdder(ProgramT &program, uint32_t w)
      : program(program), stream(*program.workers[w]) {}

  void run() {
    cutStarts();
    if (ends.empty())
      return;
    startTied();
    // The worker waits for the all-reduces of stage 0 first.
    for (uint32_t stage : {0u, lastStage()})
      for (const End &end : ends)
        if (end.label.stage() == stage)
          joinAfterWait(end);
  }

private:
  /// A replica of the first or the last stage: its gradient and its sum, both
  /// divided into a tied piece and the rest.
  struct End {
    Instruction label;
    uint32_t start; ///< index of the start of the rest's all-reduce
    uint32_t sum;
    Buffers ofGradient, ofSum;
    size_t tied; ///< index of the tied piece, 0 or 1
  };

  uint32_t lastStage() const {
    return static_cast<uint32_t>(program.stages.size() - 1);
  }

  void insert(uint32_t index, const Instruction &instruction) {
    for (Instruction &each : stream.instructions)
      if (each.opcode() == Opcode::Wait && each.target() >= index)
        each.mutate_target(each.target() + 1);
    for (End &end : ends)
      if (end.start >= index)
        ++end.start;
    stream.instructions.insert(stream.instructions.begin() + index,
                               instruction);
    ++stream.body_end;
  }

  Instruction make(Opcode opcode, Instruction made, const Buffers &operands,
                   const Buffers &results) {
    made.mutate_opcode(opcode);
    made.mutate_first_operand(static_cast<uint32_t>(stream.operands.size()));
    made.mutate_operands(static_cast<uint16_t>(operands.size()));
    made.mutate_results(static_cast<uint16_t>(results.size()));
    for (const Buffers &each : {operands, results})
      stream.operands.insert(stream.operands.end(), each.begin(), each.end());
    return made;
  }

  /// Two new buffers, which together cover the bytes of the buffer `whole`. The
  /// first one has `cut` bytes.
  Buffers piecesOf(uint32_t whole, uint64_t cut) {
    Buffer place = stream.buffers[whole];
    auto next = static_cast<uint32_t>(stream.buffers.size());
    stream.buffers.emplace_back(place.kind(), place.offset(), cut);
    stream.buffers.emplace_back(place.kind(), place.offset() + cut,
                                place.bytes() - cut);
    return {next, next + 1};
  }

  void cutStarts() {
    for (uint32_t i = 0; i < stream.instructions.size(); ++i) {
      Instruction label = stream.instructions[i];
      if (label.opcode() != Opcode::AllReduceStart ||
          label.kind() != ValueKind::WeightGradient ||
          (label.stage() != 0 && label.stage() != lastStage()))
        continue;
      uint32_t whole = stream.operands[label.first_operand()];
      uint32_t sum = stream.operands[label.first_operand() + 1];
      uint64_t begin = label.stage() == 0 ? program.tied->first_offset()
                                          : program.tied->last_offset();
      uint64_t cut = begin == 0 ? program.tied->bytes() : begin;
      label.mutate_pipeline(pipelineOf(whole));
      End end{label,
              i + 1,
              sum,
              piecesOf(whole, cut),
              piecesOf(sum, cut),
              begin == 0 ? size_t(0) : size_t(1)};
      insert(i, make(Opcode::Split, label, {whole}, end.ofGradient));
      Instruction &start = stream.instructions[i + 1];
      start = make(Opcode::AllReduceStart, start,
                   {end.ofGradient[1 - end.tied]}, {end.ofSum[1 - end.tied]});
      ends.push_back(end);
      ++i;
    }
    std::ranges::sort(ends, {}, [](const End &end) {
      return std::pair(end.label.pipeline(), end.label.stage());
    });
  }

  /// The pipeline whose gradient is in the buffer `gradient`. It is the
  /// pipeline of the zero_gradient that writes this buffer.
  uint16_t pipelineOf(uint32_t gradient) const {
    for (const Instruction &each : stream.instructions)
      if (each.opcode() == Opcode::ZeroGradient &&
          stream.operands[each.first_operand()] == gradient)
        return each.pipeline();
    return 0;
  }

  /// Starts the all-reduce of the tied pieces after the others.
  void startTied() {
    for (const End &end : ends)
      tiedStart = std::max(tiedStart, end.start + 1);
    Buffers operands;
    for (const End &end : ends)
      operands.push_back(end.ofGradient[end.tied]);
    Instruction start = ends[0].label;
    start.mutate_pipeline(0);
    start.mutate_stage(0);
    start.mutate_target(
        static_cast<uint32_t>(program.communicators.size() - 1));
    insert(tiedStart, make(Opcode::AllReduceStart, start, operands,
                           {ends[0].ofSum[ends[0].tied]}));
  }

  void joinAfterWait(const End &end) {
    uint32_t at = end.start;
    while (stream.instructions[at].opcode() != Opcode::Wait ||
           stream.instructions[at].target() != end.start)
      ++at;
    if (!waited) {
      waited = true;
      Instruction wait = stream.instructions[at];
      wait.mutate_target(tiedStart);
      insert(++at, wait);
      uint32_t sum = ends[0].ofSum[ends[0].tied];
      for (size_t k = 1; k < ends.size(); ++k)
        insert(++at, make(Opcode::Copy, ends[k].label, {sum},
                          {ends[k].ofSum[ends[k].tied]}));
    }
    insert(at + 1, make(Opcode::Join, end.label, end.ofSum, {end.sum}));
  }

  ProgramT &program;
  WorkerT &stream;
  std::vector<End> ends;
  uint32_t tiedStart = 0;
  bool waited = false;
};

} // namespace

ProgramT sampleTied(const SampleOptions &options, uint64_t bytes,
                    bool swapped) {
  ProgramT program = samplePipeline(options);
  auto last = static_cast<uint32_t>(program.stages.size() - 1);
  program.tied = std::make_unique<Tied>(
      swapped ? program.stages[0].weights_bytes() - bytes : 0,
      swapped ? 0 : program.stages[last].weights_bytes() - bytes, bytes);
  auto communicator = std::make_unique<CommunicatorT>();
  communicator->kind = ValueKind::WeightGradient;
  for (uint32_t p = 0; p < program.pipelines.size(); ++p)
    for (uint32_t s : {0u, last})
      communicator->contributions.emplace_back(program.pipelines[p]->workers[s],
                                               p, s);
  program.communicators.push_back(std::move(communicator));
  for (uint32_t w = 0; w < program.workers.size(); ++w)
    TiedParameterAdder(program, w).run();
  verify::Report report(program);
  std::vector<verify::MemoryUse> found = verify::verifyBuffers(program, report);
  for (uint32_t w = 0; w < found.size(); ++w) {
    program.workers[w]->peak_bytes = found[w].peak;
    program.workers[w]->peak_instruction = found[w].peakInstruction;
  }
  return program;
}

} // namespace chimera::program
