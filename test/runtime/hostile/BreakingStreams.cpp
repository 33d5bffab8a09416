//===- BreakingStreams.cpp - Moved, missing or repeated instructions ------===//
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
using program::Instruction;
using program::Opcode;
using program::ProgramT;
using program::WorkerT;

namespace {
/// The index of the wait for `post`, or `post` if there is none.
uint32_t waitOf(const WorkerT &worker, uint32_t post) {
  for (uint32_t i = 0; i < worker.instructions.size(); ++i)
    if (worker.instructions[i].opcode() == Opcode::Wait &&
        worker.instructions[i].target() == post)
      return i;
  return post;
}

void remove(WorkerT &worker, std::vector<uint32_t> indices) {
  rewrite(worker, [&](Sections &sections) {
    for (std::vector<uint32_t> &section : sections)
      std::erase_if(section, [&](uint32_t i) {
        return std::ranges::find(indices, i) != indices.end();
      });
  });
}

std::vector<uint32_t> &anySection(Sections &sections, Random &random) {
  std::vector<uint32_t> *filled = nullptr;
  uint64_t seen = 0;
  for (std::vector<uint32_t> &section : sections)
    if (!section.empty() && random.oneIn(++seen))
      filled = &section;
  return filled ? *filled : sections[1];
}

/// A random position in `section`. In half of the cases it is near `at`.
size_t placeNear(const std::vector<uint32_t> &section, size_t at,
                 Random &random) {
  if (random.oneIn(2))
    return random.below(section.size() + 1);
  size_t least = at > 6 ? at - 6 : 0;
  return std::min(least + random.below(13), section.size());
}

bool swapNeighbours(ProgramT &program, Random &random) {
  bool swapped = false;
  rewrite(anyWorker(program, random), [&](Sections &sections) {
    std::vector<uint32_t> &section = anySection(sections, random);
    if (section.size() < 2)
      return;
    size_t k = random.below(section.size() - 1);
    std::swap(section[k], section[k + 1]);
    swapped = true;
  });
  return swapped;
}

bool swapAny(ProgramT &program, Random &random) {
  rewrite(anyWorker(program, random), [&](Sections &sections) {
    std::vector<uint32_t> &section = anySection(sections, random);
    if (!section.empty())
      std::swap(random.any(section), random.any(section));
  });
  return true;
}

bool drop(ProgramT &program, Random &random) {
  WorkerT &worker = anyWorker(program, random);
  if (worker.instructions.empty())
    return false;
  remove(worker,
         {static_cast<uint32_t>(random.below(worker.instructions.size()))});
  return true;
}

bool dropTransfer(ProgramT &program, Random &random) {
  WorkerT &worker = anyWorker(program, random);
  std::vector<uint32_t> posts = indicesOf(worker, isPost);
  if (posts.empty())
    return false;
  uint32_t post = random.any(posts);
  remove(worker, {post, waitOf(worker, post)});
  return true;
}

bool dropMessage(ProgramT &program, Random &random) {
  Channel channel = anyChannel(program, random);
  if (channel.sends.empty())
    return false;
  size_t k = random.below(channel.sends.size());
  uint32_t send = channel.sends[k], receive = channel.receives[k];
  remove(*channel.source, {send, waitOf(*channel.source, send)});
  remove(*channel.destination,
         {receive, waitOf(*channel.destination, receive)});
  return true;
}

bool duplicate(ProgramT &program, Random &random) {
  rewrite(anyWorker(program, random), [&](Sections &sections) {
    std::vector<uint32_t> &section = anySection(sections, random);
    if (section.empty())
      return;
    size_t k = random.below(section.size());
    size_t to = placeNear(section, k, random);
    section.insert(section.begin() + static_cast<ptrdiff_t>(to), section[k]);
  });
  return true;
}

/// Repeats a post and its wait. The copies of both come directly after the
/// wait.
bool duplicateAt(WorkerT &worker, uint32_t post) {
  uint32_t wait = waitOf(worker, post);
  if (wait == post)
    return false;
  uint32_t again = 0;
  rewrite(worker, [&](Sections &sections) {
    for (std::vector<uint32_t> &section : sections) {
      auto at = std::ranges::find(section, wait);
      if (at != section.end())
        section.insert(at + 1, {post, wait});
    }
  });
  for (uint32_t i = 0; i < worker.instructions.size(); ++i)
    if (worker.instructions[i].opcode() == Opcode::Wait &&
        worker.instructions[i].target() == post && ++again == 2)
      worker.instructions[i].mutate_target(i - 1);
  return true;
}

bool duplicateTransfer(ProgramT &program, Random &random) {
  WorkerT &worker = anyWorker(program, random);
  std::vector<uint32_t> posts = indicesOf(worker, isPost);
  return !posts.empty() && duplicateAt(worker, random.any(posts));
}

bool duplicateMessage(ProgramT &program, Random &random) {
  Channel channel = anyChannel(program, random);
  if (channel.sends.empty())
    return false;
  size_t k = random.below(channel.sends.size());
  return duplicateAt(*channel.source, channel.sends[k]) &&
         duplicateAt(*channel.destination, channel.receives[k]);
}

/// Repeats an all-reduce at all its members. The copy comes directly after the
/// wait for the all-reduce.
bool duplicateReduce(ProgramT &program, Random &random) {
  if (program.communicators.empty())
    return false;
  uint64_t c = random.below(program.communicators.size());
  bool any = false;
  for (const auto &worker : program.workers) {
    std::vector<uint32_t> starts =
        messagesOf(*worker, Opcode::AllReduceStart, static_cast<uint32_t>(c));
    any |= !starts.empty() && duplicateAt(*worker, starts.back());
  }
  return any;
}

bool move(ProgramT &program, Random &random) {
  rewrite(anyWorker(program, random), [&](Sections &sections) {
    std::vector<uint32_t> &from = anySection(sections, random);
    if (from.empty())
      return;
    size_t k = random.below(from.size());
    uint32_t moved = from[k];
    from.erase(from.begin() + static_cast<ptrdiff_t>(k));
    std::vector<uint32_t> &to =
        random.oneIn(8) ? anySection(sections, random) : from;
    size_t place = placeNear(to, k, random);
    to.insert(to.begin() + static_cast<ptrdiff_t>(place), moved);
  });
  return true;
}

/// Exchanges the posts of two messages of a channel, at both ends.
bool exchangeMessages(ProgramT &program, Random &random) {
  Channel channel = anyChannel(program, random);
  if (channel.sends.size() < 2)
    return false;
  size_t a = random.below(channel.sends.size());
  size_t b = random.below(channel.sends.size());
  auto swap = [](WorkerT &worker, uint32_t left, uint32_t right) {
    std::swap(worker.instructions[left], worker.instructions[right]);
  };
  swap(*channel.source, channel.sends[a], channel.sends[b]);
  swap(*channel.destination, channel.receives[a], channel.receives[b]);
  return true;
}

} // namespace

std::span<const Mutation> hostile::streamMutations() {
  static constexpr Mutation kAll[] = {
      {"swap", "neighbours exchanged", false, swapNeighbours},
      {"swap-any", "two instructions of a section exchanged", false, swapAny},
      {"drop", "an instruction removed", false, drop},
      {"drop-transfer", "a post or start removed with its wait", false,
       dropTransfer},
      {"drop-message", "a message removed at both ends", false, dropMessage},
      {"duplicate", "an instruction twice", false, duplicate},
      {"duplicate-transfer", "a post or start twice, with its wait", false,
       duplicateTransfer},
      {"duplicate-message", "a message twice at both ends", false,
       duplicateMessage},
      {"duplicate-reduce", "an all-reduce twice at all members", false,
       duplicateReduce},
      {"move", "an instruction elsewhere", false, move},
      {"exchange-messages", "two messages of a channel change places", false,
       exchangeMessages}};
  return kAll;
}
