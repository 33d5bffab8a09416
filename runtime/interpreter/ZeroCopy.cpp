//===- ZeroCopy.cpp - Messages that are passed without a copy -------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/ZeroCopy.h"

#include "runtime/interpreter/Uses.h"

#include <algorithm>

using namespace chimera;
using namespace chimera::runtime;
using program::Instruction;
using program::Opcode;

namespace {
bool isInArena(const program::Buffer &buffer) {
  return !program::isStash(buffer.kind());
}

/// An instruction that uses memory of a block. `reads` is false only if the
/// instruction overwrites the memory without reading it.
struct Touch {
  uint32_t instruction;
  bool reads;
};

class Finder {
public:
  Finder(const program::ProgramT &program, const program::WorkerT &worker,
         const Blocks &blocks)
      : program(program), worker(worker), blocks(blocks),
        exchangeable(blocks.isUniform), waits(worker.instructions.size()),
        touches(blocks.bytes.size()) {
    for (const program::State &state : worker.states)
      for (uint32_t buffer : {state.weights(), state.optimizer_state()})
        exchangeable[blockOf(buffer)] = false;
    for (uint32_t i = 0; i < worker.instructions.size(); ++i)
      visit(i);
  }

  std::vector<bool> find() const {
    std::vector<bool> found(worker.instructions.size());
    for (uint32_t i = 0; i < found.size(); ++i) {
      const Instruction &post = worker.instructions[i];
      if (post.opcode() == Opcode::PostRecv)
        found[i] = exchangeable[blockOf(program::resultsOf(worker, post)[0])];
      else if (post.opcode() == Opcode::PostSend)
        found[i] =
            isGivenAway(i, blockOf(program::operandsOf(worker, post)[0]));
    }
    return found;
  }

private:
  uint32_t blockOf(size_t buffer) const {
    return blocks.locations[buffer].block;
  }

  void visit(uint32_t i) {
    const Instruction &instruction = worker.instructions[i];
    bool isRename = instruction.opcode() == Opcode::Rename;
    if (instruction.opcode() == Opcode::Wait)
      waits[instruction.target()] = i;
    forEachUse(worker, instruction, [&](uint32_t buffer, Use use) {
      if (!isInArena(worker.buffers[buffer]))
        return;
      if (isRename) {
        exchangeable[blockOf(buffer)] = false;
        return;
      }
      std::vector<Touch> &list = touches[blockOf(buffer)];
      if (list.empty() || list.back().instruction != i)
        list.push_back({i, use != Use::Write});
    });
  }

  /// Whether the send at `post` may pass the memory of the block to the
  /// receiver. This is the case if no instruction reads the bytes of the block
  /// after the wait for the send.
  bool isGivenAway(uint32_t post, uint32_t block) const {
    if (!exchangeable[block])
      return false;
    const std::vector<Touch> &list = touches[block];
    auto own = std::ranges::lower_bound(list, post, {}, &Touch::instruction);
    // The next instruction that uses the block must be the wait for this send.
    auto wait = own + 1;
    if (wait == list.end() || wait->instruction != waits[post])
      return false;
    uint32_t sectionEnd = endOfSection(post);
    if (wait + 1 != list.end() && (wait + 1)->instruction < sectionEnd)
      return !(wait + 1)->reads;
    // No later instruction of the section uses the block. With a flush, the
    // body runs again, so the next use is the first use in the body: it must
    // not read. Without a flush, another section may follow and read the value.
    return program.updates == program::Updates::Flush && !list.front().reads;
  }

  uint32_t endOfSection(uint32_t i) const {
    return i < worker.body_begin ? worker.body_begin
           : i < worker.body_end
               ? worker.body_end
               : static_cast<uint32_t>(worker.instructions.size());
  }

  const program::ProgramT &program;
  const program::WorkerT &worker;
  const Blocks &blocks;
  std::vector<bool> exchangeable; // by block
  std::vector<uint32_t> waits;    // by index of the post: index of its wait
  std::vector<std::vector<Touch>> touches; // by block, in order
};
} // namespace

std::vector<bool>
chimera::runtime::findZeroCopyMessages(const program::ProgramT &program,
                                       const program::WorkerT &worker,
                                       const Blocks &blocks) {
  return Finder(program, worker, blocks).find();
}
