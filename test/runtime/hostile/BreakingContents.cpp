//===- BreakingContents.cpp - Changes of instructions' contents -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/hostile/Mutate.h"
#include "test/runtime/hostile/Pick.h"

#include <algorithm>

using namespace chimera;
using namespace chimera::runtime;
using namespace chimera::runtime::hostile;
using program::Buffer;
using program::Instruction;
using program::Opcode;
using program::ProgramT;
using program::WorkerT;

namespace {
bool retarget(ProgramT &program, Random &random) {
  WorkerT &worker = anyWorker(program, random);
  std::vector<uint32_t> targets =
      indicesOf(worker, [](const Instruction &each) {
        return isPost(each) || each.opcode() == Opcode::Wait;
      });
  if (targets.empty())
    return false;
  Instruction &each = worker.instructions[random.any(targets)];
  uint64_t most = isMessage(each) ? program.workers.size()
                  : isPost(each)  ? program.communicators.size()
                                  : worker.instructions.size();
  each.mutate_target(static_cast<uint32_t>(random.below(most)));
  return true;
}

bool exchangeWaits(ProgramT &program, Random &random) {
  WorkerT &worker = anyWorker(program, random);
  std::vector<uint32_t> waits = indicesOf(worker, [](const Instruction &each) {
    return each.opcode() == Opcode::Wait;
  });
  if (waits.size() < 2)
    return false;
  Instruction &left = worker.instructions[random.any(waits)];
  Instruction &right = worker.instructions[random.any(waits)];
  uint32_t target = left.target();
  left.mutate_target(right.target());
  right.mutate_target(target);
  return true;
}

bool resize(ProgramT &program, Random &random) {
  WorkerT &worker = anyWorker(program, random);
  if (worker.buffers.empty() || worker.instructions.empty())
    return false;
  Buffer &buffer = random.any(worker.buffers);
  Instruction &each = random.any(worker.instructions);
  auto off = static_cast<uint16_t>(random.oneIn(2) ? 1 : UINT16_MAX);
  switch (random.below(7)) {
  case 0:
    buffer.mutate_bytes(buffer.bytes() + 8 * (1 + random.below(8)));
    break;
  case 1:
    buffer.mutate_bytes(buffer.bytes() / 2);
    break;
  case 2:
    buffer.mutate_bytes(random.any(worker.buffers).bytes());
    break;
  case 3:
    worker.arena_bytes += random.oneIn(2) ? 64 : -uint64_t(64);
    break;
  case 4:
    each.mutate_operands(static_cast<uint16_t>(each.operands() + off));
    break;
  case 5:
    each.mutate_results(static_cast<uint16_t>(each.results() + off));
    break;
  default:
    each.mutate_micro_batches(each.micro_batches() + int16_t(off));
    break;
  }
  return true;
}

/// A random operand or result of a random instruction. Gives this instruction
/// its own entries in the operand pool first, so that the caller changes no
/// other instruction.
uint32_t *anyOperand(WorkerT &worker, Random &random) {
  std::vector<uint32_t> with = indicesOf(worker, [](const Instruction &each) {
    return each.operands() + each.results() > 0;
  });
  if (with.empty())
    return nullptr;
  Instruction &each = worker.instructions[random.any(with)];
  uint32_t first = each.first_operand();
  uint32_t count = uint32_t(each.operands()) + each.results();
  if (first + uint64_t(count) > worker.operands.size())
    return nullptr;
  each.mutate_first_operand(static_cast<uint32_t>(worker.operands.size()));
  for (uint32_t k = 0; k < count; ++k) {
    uint32_t operand = worker.operands[first + k];
    worker.operands.push_back(operand);
  }
  return &worker.operands[each.first_operand() + random.below(count)];
}

bool exchangeOperands(ProgramT &program, Random &random) {
  WorkerT &worker = anyWorker(program, random);
  uint32_t *left = anyOperand(worker, random);
  if (!left)
    return false;
  auto at = left - worker.operands.data();
  // Choose buffers of one kind; otherwise the fault would be too easy to find.
  for (uint32_t tries = 0; tries < 30; ++tries) {
    uint32_t *right = anyOperand(worker, random);
    left = &worker.operands[static_cast<size_t>(at)];
    if (!right || *left >= worker.buffers.size() ||
        *right >= worker.buffers.size())
      return false;
    if (*left != *right &&
        worker.buffers[*left].kind() == worker.buffers[*right].kind()) {
      std::swap(*left, *right);
      return true;
    }
  }
  return false;
}

bool replaceOperand(ProgramT &program, Random &random) {
  WorkerT &worker = anyWorker(program, random);
  uint32_t *operand = anyOperand(worker, random);
  if (!operand || *operand >= worker.buffers.size())
    return false;
  std::vector<uint32_t> others;
  for (uint32_t b = 0; b < worker.buffers.size(); ++b)
    if (b != *operand &&
        worker.buffers[b].kind() == worker.buffers[*operand].kind())
      others.push_back(b);
  if (others.empty())
    return false;
  *operand = random.any(others);
  return true;
}

/// Exchanges the places of two buffers of a worker, moves a buffer, or
/// exchanges two buffers of one kind in all operands from a random one on.
bool exchangeBuffers(ProgramT &program, Random &random) {
  WorkerT &worker = anyWorker(program, random);
  if (worker.buffers.empty())
    return false;
  auto a = static_cast<uint32_t>(random.below(worker.buffers.size()));
  auto b = static_cast<uint32_t>(random.below(worker.buffers.size()));
  Buffer &left = worker.buffers[a], &right = worker.buffers[b];
  uint64_t offset = left.offset();
  switch (random.below(4)) {
  case 0:
    left.mutate_offset(right.offset());
    right.mutate_offset(offset);
    return true;
  case 1:
    left.mutate_offset(right.offset());
    return true;
  case 2:
    left.mutate_offset(8 * random.below(worker.arena_bytes / 8 + 1));
    return true;
  default: {
    if (left.kind() != right.kind())
      return false;
    size_t from = random.below(worker.operands.size() + 1);
    for (size_t o = from; o < worker.operands.size(); ++o)
      if (worker.operands[o] == a || worker.operands[o] == b)
        worker.operands[o] ^= a ^ b;
    return true;
  }
  }
}

bool relabel(ProgramT &program, Random &random) {
  WorkerT &worker = anyWorker(program, random);
  if (worker.instructions.empty())
    return false;
  Instruction &each = random.any(worker.instructions);
  auto small = static_cast<uint16_t>(random.below(3));
  switch (random.below(6)) {
  case 0:
    each.mutate_micro_batch(
        static_cast<uint32_t>(random.below(2 * program.micro_batches)));
    break;
  case 1:
    each.mutate_stage(
        static_cast<uint16_t>(random.below(program.stages.size())));
    break;
  case 2:
    each.mutate_pipeline(
        static_cast<uint16_t>(random.below(program.pipelines.size())));
    break;
  case 3:
    each.mutate_part(static_cast<uint8_t>(small));
    break;
  case 4:
    each.mutate_weight_version(small);
    break;
  default:
    each.mutate_kind(static_cast<program::ValueKind>(
        random.below(static_cast<uint64_t>(program::ValueKind::MAX) + 1)));
  }
  return true;
}

void exchangeLabels(Instruction &left, Instruction &right) {
  Instruction other = left;
  auto take = [](Instruction &to, const Instruction &from) {
    to.mutate_pipeline(from.pipeline());
    to.mutate_stage(from.stage());
    to.mutate_micro_batch(from.micro_batch());
    to.mutate_micro_batches(from.micro_batches());
    to.mutate_part(from.part());
    to.mutate_parts(from.parts());
    to.mutate_kind(from.kind());
  };
  take(left, right);
  take(right, other);
}

/// Exchanges the labels (stage, micro-batch and so on) of two messages of a
/// channel, at both ends.
bool exchangeMessageLabels(ProgramT &program, Random &random) {
  Channel channel = anyChannel(program, random);
  if (channel.sends.size() < 2)
    return false;
  size_t a = random.below(channel.sends.size());
  size_t b = random.below(channel.sends.size());
  std::vector<Instruction> &source = channel.source->instructions;
  std::vector<Instruction> &destination = channel.destination->instructions;
  exchangeLabels(source[channel.sends[a]], source[channel.sends[b]]);
  exchangeLabels(destination[channel.receives[a]],
                 destination[channel.receives[b]]);
  return true;
}

/// Exchanges two instructions with the same opcode: their positions, or only
/// their labels, or only their operands.
bool exchangeActions(ProgramT &program, Random &random) {
  WorkerT &worker = anyWorker(program, random);
  if (worker.instructions.empty())
    return false;
  Instruction &left = random.any(worker.instructions);
  std::vector<uint32_t> same = indicesOf(worker, [&](const Instruction &each) {
    return each.opcode() == left.opcode() && &each != &left;
  });
  if (same.empty() || left.opcode() == Opcode::Wait)
    return false;
  Instruction &right = worker.instructions[random.any(same)];
  switch (random.below(3)) {
  case 0:
    std::swap(left, right);
    break;
  case 1:
    exchangeLabels(left, right);
    break;
  default: {
    uint32_t first = left.first_operand();
    left.mutate_first_operand(right.first_operand());
    right.mutate_first_operand(first);
  }
  }
  return true;
}

bool changeTables(ProgramT &program, Random &random) {
  WorkerT &worker = anyWorker(program, random);
  switch (random.below(6)) {
  case 0: {
    if (worker.states.size() < 2)
      return false;
    program::State &left = worker.states[0];
    program::State &right =
        worker.states[1 + random.below(worker.states.size() - 1)];
    uint32_t weights = left.weights(), state = left.optimizer_state();
    if (random.oneIn(2)) {
      left.mutate_weights(right.weights());
      right.mutate_weights(weights);
    } else {
      left.mutate_optimizer_state(right.optimizer_state());
      right.mutate_optimizer_state(state);
    }
    return true;
  }
  case 1: {
    uint32_t &end = random.oneIn(2) ? worker.body_begin : worker.body_end;
    end += random.oneIn(2) ? 1 : UINT32_MAX;
    return true;
  }
  case 2: {
    if (program.communicators.empty())
      return false;
    auto &list = random.any(program.communicators)->contributions;
    if (list.empty())
      return false;
    auto at = static_cast<ptrdiff_t>(random.below(list.size()));
    if (random.oneIn(2))
      list.erase(list.begin() + at);
    else
      std::swap(list[static_cast<size_t>(at)], random.any(list));
    return true;
  }
  case 3: {
    if (program.communicators.empty())
      return false;
    auto &list = random.any(program.communicators)->contributions;
    if (list.empty())
      return false;
    random.any(list).mutate_stage(
        static_cast<uint32_t>(random.below(program.stages.size())));
    return true;
  }
  case 4: {
    program::PipelineT &pipeline = *random.any(program.pipelines);
    std::swap(random.any(pipeline.workers), random.any(pipeline.workers));
    return true;
  }
  default: {
    // Exchange two communicators.
    if (program.communicators.size() < 2)
      return false;
    std::swap(random.any(program.communicators),
              random.any(program.communicators));
    return true;
  }
  }
}

bool moveCutIntoWord(ProgramT &program, Random &random) {
  return moveCut(program, random, static_cast<int64_t>(1 + random.below(7)));
}
} // namespace

std::span<const Mutation> hostile::contentMutations() {
  static constexpr Mutation kAll[] = {
      {"retarget", "another peer, communicator or post to wait for", false,
       retarget},
      {"exchange-waits", "two waits complete each other's posts", false,
       exchangeWaits},
      {"resize", "other bytes, counts or ranges", false, resize},
      {"exchange-operands", "two buffers of one kind change places", false,
       exchangeOperands},
      {"replace-operand", "another buffer of the kind", false, replaceOperand},
      {"exchange-buffers", "other bytes or buffers from somewhere on", false,
       exchangeBuffers},
      {"relabel", "another label of an instruction", false, relabel},
      {"relabel-messages", "two messages carry each other's labels", false,
       exchangeMessageLabels},
      {"exchange-actions",
       "two instructions of an opcode change places, "
       "labels or operands",
       false, exchangeActions},
      {"cut-words", "a gradient's buckets cut inside a word", false,
       moveCutIntoWord},
      {"tables", "other states, sections, communicators or placement", false,
       changeTables}};
  return kAll;
}
