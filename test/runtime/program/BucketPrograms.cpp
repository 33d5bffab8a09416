//===- BucketPrograms.cpp - Gradients in buckets, for tests ---------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/program/BucketPrograms.h"

#include "runtime/proof/Facts.h"
#include "test/runtime/program/Changes.h"

#include <set>

namespace chimera::program {

namespace {

/// Cuts the gradients of one worker of a sample into two buckets each. The two
/// buckets of stage 0 have equal sizes.
class BucketCutter {
public:
  BucketCutter(ProgramT &program, uint32_t w)
      : program(program), w(w), stream(worker(program, w)) {}

  void run() {
    for (uint32_t i = 0; i < stream.instructions.size(); ++i)
      if (const Instruction &start = stream.instructions[i];
          start.opcode() == Opcode::AllReduceStart &&
          start.kind() == ValueKind::WeightGradient)
        i = cut(i);
  }

private:
  /// Two new buffers, which together cover the bytes of the buffer `whole`.
  std::vector<uint32_t> piecesOf(uint32_t whole) {
    Buffer place = stream.buffers[whole];
    uint64_t first = (place.bytes() / 2 + 7) / 8 * 8;
    auto next = static_cast<uint32_t>(stream.buffers.size());
    stream.buffers.emplace_back(ValueKind::WeightGradient, place.offset(),
                                first);
    stream.buffers.emplace_back(ValueKind::WeightGradient,
                                place.offset() + first, place.bytes() - first);
    return {next, next + 1};
  }

  Instruction make(Opcode opcode, const Instruction &like,
                   const std::vector<uint32_t> &buffers, uint16_t operands) {
    Instruction made = like;
    made.mutate_opcode(opcode);
    made.mutate_first_operand(static_cast<uint32_t>(stream.operands.size()));
    made.mutate_operands(operands);
    made.mutate_results(static_cast<uint16_t>(buffers.size() - operands));
    stream.operands.insert(stream.operands.end(), buffers.begin(),
                           buffers.end());
    return made;
  }

  /// Replaces the all-reduce that instruction `i` starts by one all-reduce for
  /// each bucket. Returns the index of the last start.
  uint32_t cut(uint32_t i) {
    const Instruction start = stream.instructions[i];
    uint32_t whole = operand(program, w, start, 0);
    uint32_t sum = operand(program, w, start, 1);
    std::vector<uint32_t> given = piecesOf(whole), sums = piecesOf(sum);
    Instruction label = start;
    // Pipeline 0 runs down: its stage s is on worker s.
    label.mutate_pipeline(start.stage() == w ? 0 : 1);
    Instruction starts[2];
    for (uint32_t k : {0u, 1u}) {
      starts[k] = make(Opcode::AllReduceStart, start, {given[k], sums[k]}, 1);
      starts[k].mutate_micro_batch(k);
      starts[k].mutate_micro_batches(2);
    }
    insert(program, w, i,
           make(Opcode::Split, label, {whole, given[0], given[1]}, 1));
    stream.instructions[i + 1] = starts[0];
    insert(program, w, i + 2, starts[1]);
    uint32_t wait = i + 3;
    while (stream.instructions[wait].opcode() != Opcode::Wait ||
           stream.instructions[wait].target() != i + 1)
      ++wait;
    Instruction second = stream.instructions[wait];
    second.mutate_target(i + 2);
    insert(program, w, wait + 1, second);
    insert(program, w, wait + 2,
           make(Opcode::Join, label, {sums[0], sums[1], sum}, 2));
    return i + 2;
  }

  ProgramT &program;
  uint32_t w;
  WorkerT &stream;
};

/// The buffers of one worker that contain bucket `number` or bucket `number +
/// 1` of a communicator.
class BucketMover {
public:
  BucketMover(WorkerT &worker, uint32_t communicator, uint32_t number)
      : worker(worker) {
    for (const Instruction &each : worker.instructions)
      if (isStart(each, communicator, number))
        note(each, first);
      else if (isStart(each, communicator, number + 1))
        note(each, second);
    // The sum of tied parameters may be copied to another replica on this
    // worker.
    for (const Instruction &each : worker.instructions)
      if (each.opcode() == Opcode::Copy)
        for (std::set<uint32_t> *bucket : {&first, &second})
          for (uint32_t buffer : buffersOf(each))
            if (bucket->contains(buffer))
              note(each, *bucket);
  }

  bool isEmpty() const { return first.empty() && second.empty(); }

  bool canMove(int64_t bytes) const {
    if (first.empty() || second.empty())
      return false;
    for (uint32_t buffer : first)
      if (second.contains(buffer) || size(buffer) + bytes <= 0)
        return false;
    for (uint32_t buffer : second)
      if (size(buffer) - bytes <= 0)
        return false;
    return true;
  }

  /// Whether these buffers never contain another value. This function need not
  /// check splits and joins: their pieces also occur in all-reduces or copies.
  bool areAlone(uint32_t communicator, uint32_t bucket) const {
    for (const Instruction &each : worker.instructions) {
      if (each.opcode() == Opcode::Split || each.opcode() == Opcode::Join)
        continue;
      bool mayHave = each.opcode() == Opcode::Copy ||
                     isStart(each, communicator, bucket) ||
                     isStart(each, communicator, bucket + 1);
      for (uint32_t buffer : buffersOf(each))
        if (!mayHave && (first.contains(buffer) || second.contains(buffer)))
          return false;
    }
    return true;
  }

  void move(int64_t bytes) {
    for (uint32_t b : first)
      worker.buffers[b].mutate_bytes(static_cast<uint64_t>(size(b) + bytes));
    for (uint32_t b : second) {
      Buffer &buffer = worker.buffers[b];
      buffer.mutate_bytes(static_cast<uint64_t>(size(b) - bytes));
      buffer.mutate_offset(buffer.offset() + static_cast<uint64_t>(bytes));
    }
  }

private:
  static bool isStart(const Instruction &each, uint32_t communicator,
                      uint32_t bucket) {
    return each.opcode() == Opcode::AllReduceStart &&
           each.kind() == ValueKind::WeightGradient &&
           each.target() == communicator && each.micro_batch() == bucket &&
           bucket < each.micro_batches();
  }
  std::span<const uint32_t> buffersOf(const Instruction &each) const {
    size_t begin = each.first_operand();
    size_t count = size_t(each.operands()) + each.results();
    if (begin + count > worker.operands.size())
      return {};
    return std::span(worker.operands).subspan(begin, count);
  }
  void note(const Instruction &each, std::set<uint32_t> &buckets) const {
    for (uint32_t buffer : buffersOf(each))
      if (buffer < worker.buffers.size())
        buckets.insert(buffer);
  }
  int64_t size(uint32_t buffer) const {
    return static_cast<int64_t>(worker.buffers[buffer].bytes());
  }

  WorkerT &worker;
  std::set<uint32_t> first, second;
};

} // namespace

ProgramT sampleInBuckets(const SampleOptions &options) {
  ProgramT program = samplePipeline(options);
  for (uint32_t w = 0; w < program.workers.size(); ++w)
    BucketCutter(program, w).run();
  verify::Report report(program);
  std::vector<verify::MemoryUse> found = verify::verifyBuffers(program, report);
  for (uint32_t w = 0; w < program.workers.size(); ++w) {
    worker(program, w).peak_bytes = found[w].peak;
    worker(program, w).peak_instruction = found[w].peakInstruction;
  }
  return program;
}

bool moveBucketBoundary(ProgramT &program, uint32_t communicator,
                        uint32_t bucket, int64_t bytes) {
  std::vector<BucketMover> cuts;
  for (auto &worker : program.workers) {
    BucketMover cut(*worker, communicator, bucket);
    if (cut.isEmpty())
      continue;
    if (!cut.canMove(bytes) || !cut.areAlone(communicator, bucket))
      return false;
    cuts.push_back(std::move(cut));
  }
  for (BucketMover &cut : cuts)
    cut.move(bytes);
  return !cuts.empty();
}

} // namespace chimera::program
