//===- Rewrite.cpp - Changes of an instruction stream ---------------------===//
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
using program::WorkerT;

void hostile::rewrite(WorkerT &worker,
                      const std::function<void(Sections &)> &edit) {
  auto size = static_cast<uint32_t>(worker.instructions.size());
  uint32_t ends[] = {std::min(worker.body_begin, size),
                     std::min(worker.body_end, size), size};
  Sections sections(3);
  for (uint32_t s = 0, i = 0; s < 3; ++s)
    for (; i < ends[s]; ++i)
      sections[s].push_back(i);
  edit(sections);

  std::vector<Instruction> stream;
  std::vector<uint32_t> now(size, UINT32_MAX);
  for (const std::vector<uint32_t> &section : sections)
    for (uint32_t old : section) {
      if (now[old] == UINT32_MAX)
        now[old] = static_cast<uint32_t>(stream.size());
      stream.push_back(worker.instructions[old]);
    }
  for (Instruction &each : stream)
    if (each.opcode() == Opcode::Wait && each.target() < size)
      each.mutate_target(now[each.target()]);
  worker.body_begin = static_cast<uint32_t>(sections[0].size());
  worker.body_end =
      worker.body_begin + static_cast<uint32_t>(sections[1].size());
  uint32_t peak =
      worker.peak_instruction < size ? now[worker.peak_instruction] : 0;
  worker.peak_instruction = peak == UINT32_MAX ? 0 : peak;
  worker.instructions = std::move(stream);
}

namespace {
struct Touch {
  uint32_t buffer;
  bool writes;
};

std::vector<Touch> touchesOf(const WorkerT &worker,
                             const Instruction &instruction) {
  // A wait uses the buffers of the operation for which it waits.
  const Instruction &of = instruction.opcode() == Opcode::Wait
                              ? worker.instructions[instruction.target()]
                              : instruction;
  std::vector<Touch> touches;
  for (uint32_t buffer : program::operandsOf(worker, of)) {
    program::ValueKind kind = worker.buffers[buffer].kind();
    // A use of a stash empties it, so it counts as a write.
    touches.push_back(
        {buffer, program::isStash(kind) || addsToLoss(of.opcode(), kind)});
  }
  for (uint32_t buffer : program::resultsOf(worker, of))
    touches.push_back({buffer, true});
  return touches;
}

bool overlap(const WorkerT &worker, uint32_t a, uint32_t b) {
  if (a == b)
    return true;
  const program::Buffer &left = worker.buffers[a], &right = worker.buffers[b];
  if (program::isStash(left.kind()) || program::isStash(right.kind()))
    return false;
  return left.offset() < right.offset() + right.bytes() &&
         right.offset() < left.offset() + left.bytes();
}

/// Whether instruction `i` is a group or one of the posts of a group.
bool isGrouped(const WorkerT &worker, uint32_t i) {
  for (uint32_t g = 0; g <= i; ++g)
    if (worker.instructions[g].opcode() == Opcode::Group &&
        i <= g + worker.instructions[g].target())
      return true;
  return false;
}
} // namespace

bool hostile::areIndependent(const WorkerT &worker, uint32_t i) {
  if (i + 1 >= worker.instructions.size() || i + 1 == worker.body_begin ||
      i + 1 == worker.body_end || isGrouped(worker, i) ||
      isGrouped(worker, i + 1))
    return false;
  const Instruction &first = worker.instructions[i];
  const Instruction &second = worker.instructions[i + 1];
  if (second.opcode() == Opcode::Rename)
    return false;
  bool firstPosts = isPost(first);
  if (firstPosts && second.opcode() == Opcode::Wait)
    return false;
  if (firstPosts && second.opcode() == first.opcode() &&
      second.target() == first.target())
    return false;
  // Two actions of one stage keep their order if one is an update: an
  // instruction states the age of its weights as a number of updates. They also
  // keep it if one is a forward and the other a recompute: a recompute must
  // come after its forward.
  auto isOne = [&](Opcode opcode) {
    return first.opcode() == opcode || second.opcode() == opcode;
  };
  bool sameStage =
      first.pipeline() == second.pipeline() && first.stage() == second.stage();
  if (sameStage && (isOne(Opcode::OptimizerStep) ||
                    (isOne(Opcode::Forward) && isOne(Opcode::Recompute))))
    return false;
  for (Touch left : touchesOf(worker, first))
    for (Touch right : touchesOf(worker, second))
      if ((left.writes || right.writes) &&
          overlap(worker, left.buffer, right.buffer))
        return false;
  return true;
}

std::span<const hostile::Mutation> hostile::mutations() {
  static const std::vector<Mutation> all = [] {
    std::vector<Mutation> list;
    for (std::span<const Mutation> some :
         {streamMutations(), contentMutations(), keepingMutations()})
      list.insert(list.end(), some.begin(), some.end());
    return list;
  }();
  return all;
}
