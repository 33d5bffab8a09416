//===- Keeping.cpp - Mutations that keep a program's meaning --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/hostile/Mutate.h"
#include "test/runtime/hostile/Pick.h"

#include <algorithm>
#include <numeric>

using namespace chimera;
using namespace chimera::runtime;
using namespace chimera::runtime::hostile;
using program::Instruction;
using program::Opcode;
using program::ProgramT;
using program::WorkerT;

namespace {
void exchange(WorkerT &worker, uint32_t i) {
  rewrite(worker, [&](Sections &sections) {
    for (std::vector<uint32_t> &section : sections)
      for (size_t k = 0; k + 1 < section.size(); ++k)
        if (section[k] == i)
          return std::swap(section[k], section[k + 1]);
  });
}

bool renumberBuffers(ProgramT &program, Random &random) {
  WorkerT &worker = anyWorker(program, random);
  std::vector<uint32_t> now(worker.buffers.size());
  std::iota(now.begin(), now.end(), 0);
  for (size_t b = now.size(); b > 1; --b)
    std::swap(now[b - 1], now[random.below(b)]);
  std::vector<program::Buffer> buffers = worker.buffers;
  for (size_t b = 0; b < now.size(); ++b)
    buffers[now[b]] = worker.buffers[b];
  worker.buffers = std::move(buffers);
  for (uint32_t &operand : worker.operands)
    operand = now[operand];
  for (program::State &state : worker.states) {
    state.mutate_weights(now[state.weights()]);
    state.mutate_optimizer_state(now[state.optimizer_state()]);
  }
  return true;
}

bool reorderOperandPool(ProgramT &program, Random &random) {
  WorkerT &worker = anyWorker(program, random);
  std::vector<uint32_t> order(worker.instructions.size()), pool;
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[random.below(i)]);
  for (uint32_t i : order) {
    Instruction &each = worker.instructions[i];
    auto begin = worker.operands.begin() + each.first_operand();
    uint32_t count = uint32_t(each.operands()) + each.results();
    if (count == 0)
      continue;
    each.mutate_first_operand(static_cast<uint32_t>(pool.size()));
    pool.insert(pool.end(), begin, begin + count);
  }
  worker.operands = std::move(pool);
  return true;
}

/// For each buffer, the number of a representative. Buffers that are pieces of
/// the same buffer (Split, Join) have the same representative as this buffer.
/// They must keep their relative positions.
std::vector<uint32_t> wholesOf(const WorkerT &worker) {
  std::vector<uint32_t> whole(worker.buffers.size());
  std::iota(whole.begin(), whole.end(), 0);
  auto find = [&](uint32_t b) {
    while (whole[b] != b)
      b = whole[b];
    return b;
  };
  for (const Instruction &each : worker.instructions) {
    if (each.opcode() != Opcode::Split && each.opcode() != Opcode::Join)
      continue;
    uint32_t first = worker.operands[each.first_operand()];
    for (uint32_t k = 1; k < uint32_t(each.operands()) + each.results(); ++k)
      whole[find(worker.operands[each.first_operand() + k])] = find(first);
  }
  for (uint32_t &b : whole)
    b = find(b);
  return whole;
}

/// Moves all buffers except stashes, in a random order, so that no two of them
/// share bytes. Pieces of the same buffer move together.
bool spreadBuffers(ProgramT &program, Random &random) {
  WorkerT &worker = anyWorker(program, random);
  std::vector<uint32_t> whole = wholesOf(worker);
  std::vector<uint64_t> begin(whole.size(), UINT64_MAX), size(whole.size());
  for (size_t b = 0; b < whole.size(); ++b)
    begin[whole[b]] = std::min(begin[whole[b]], worker.buffers[b].offset());
  for (size_t b = 0; b < whole.size(); ++b)
    size[whole[b]] = std::max(size[whole[b]], worker.buffers[b].offset() +
                                                  worker.buffers[b].bytes() -
                                                  begin[whole[b]]);
  std::vector<uint32_t> order(whole.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<uint64_t> now(whole.size());
  uint64_t end = 0;
  for (size_t b = order.size(); b > 0; --b) {
    std::swap(order[b - 1], order[random.below(b)]);
    uint32_t buffer = order[b - 1];
    if (whole[buffer] != buffer ||
        program::isStash(worker.buffers[buffer].kind()))
      continue;
    now[buffer] = end;
    end += (size[buffer] + 63) / 64 * 64 + 64 * random.below(2);
  }
  for (size_t b = 0; b < whole.size(); ++b)
    if (!program::isStash(worker.buffers[b].kind()))
      worker.buffers[b].mutate_offset(
          now[whole[b]] + worker.buffers[b].offset() - begin[whole[b]]);
  worker.arena_bytes = end;
  return true;
}

bool exchangeIndependent(ProgramT &program, Random &random) {
  bool any = false;
  for (uint64_t k = 1 + random.below(20); k > 0; --k) {
    WorkerT &worker = anyWorker(program, random);
    auto i = static_cast<uint32_t>(random.below(worker.instructions.size()));
    if (!areIndependent(worker, i))
      continue;
    exchange(worker, i);
    any = true;
  }
  return any;
}

/// Moves a random instruction that `moves` selects. Moves it towards the
/// beginning of the stream if `earlier`, otherwise towards the end. Exchanges
/// it with its neighbour as long as the two are independent; in half of the
/// cases, at most 5 times. Returns whether it moved.
bool shift(ProgramT &program, Random &random,
           bool (*moves)(const WorkerT &, uint32_t), bool earlier) {
  WorkerT &worker = anyWorker(program, random);
  std::vector<uint32_t> candidates;
  for (uint32_t i = 0; i < worker.instructions.size(); ++i)
    if (moves(worker, i))
      candidates.push_back(i);
  if (candidates.empty())
    return false;
  uint32_t i = random.any(candidates);
  uint64_t most = random.oneIn(2) ? UINT64_MAX : 1 + random.below(5), done = 0;
  while (done < most && (earlier ? i > 0 && areIndependent(worker, i - 1)
                                 : areIndependent(worker, i))) {
    exchange(worker, earlier ? i - 1 : i);
    i = earlier ? i - 1 : i + 1;
    ++done;
  }
  return done > 0;
}

bool postReceivesEarlier(ProgramT &program, Random &random) {
  if (random.oneIn(2))
    spreadBuffers(program, random);
  bool any = false;
  for (uint64_t k = 1 + random.below(8); k > 0; --k)
    any |= shift(
        program, random,
        [](const WorkerT &worker, uint32_t i) {
          return worker.instructions[i].opcode() == Opcode::PostRecv;
        },
        true);
  return any;
}

bool moveSendsWaits(ProgramT &program, Random &random) {
  auto isSendWait = [](const WorkerT &worker, uint32_t i) {
    const Instruction &each = worker.instructions[i];
    return each.opcode() == Opcode::Wait &&
           worker.instructions[each.target()].opcode() == Opcode::PostSend;
  };
  return shift(program, random, isSendWait, random.oneIn(2));
}

bool moveCutByWord(ProgramT &program, Random &random) {
  return moveCut(program, random, program::kBucketAlignment);
}
} // namespace

std::span<const Mutation> hostile::keepingMutations() {
  static constexpr Mutation kAll[] = {
      {"renumber", "buffers of a worker get other numbers", true,
       renumberBuffers},
      {"repool", "operands stand elsewhere in the pool", true,
       reorderOperandPool},
      {"spread", "each buffer of a worker gets bytes of its own", true,
       spreadBuffers},
      {"commute", "independent neighbours exchanged", true,
       exchangeIndependent},
      {"earlier", "receives posted earlier", true, postReceivesEarlier},
      {"rewait", "the wait of a send at another independent place", true,
       moveSendsWaits},
      {"recut", "a gradient's buckets cut a word earlier or later", true,
       moveCutByWord}};
  return kAll;
}
