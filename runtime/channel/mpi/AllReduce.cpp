//===- AllReduce.cpp - An ordered all-reduce over MPI ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/mpi/AllReduce.h"

#include "runtime/device/Fold.h"

#include <algorithm>

using namespace chimera::runtime;
using namespace chimera::runtime::mpi;

Block ScratchPool::take(uint64_t bytes) {
  if (auto entry = spare.extract(bytes))
    return std::move(entry.mapped());
  // The memory is not set to zero: that would take longer than the receive into
  // it.
  return makeBlock(bytes);
}

AllReduce::AllReduce(const ReduceGroup &group, uint32_t self, ElementType type,
                     std::vector<ConstBytes> given, Bytes sum, MPI_Comm scatter,
                     MPI_Comm gather, ScratchPool &scratch)
    : PendingAllReduce(group.id), self(self), type(type),
      members(membersOf(group)), sum(sum), scatter(scatter), gather(gather),
      scratch(scratch), contributors(group.contributors),
      own(contributors.size()), others(contributors.size()) {
  memberIndex =
      std::lower_bound(members.begin(), members.end(), self) - members.begin();
  size_t next = 0;
  for (size_t i = 0; i < contributors.size(); ++i)
    if (contributors[i] == self)
      own[i] = given[next++].data();
}

AllReduce::~AllReduce() {
  abandon(receives, true);
  abandon(sends, false);
}

/// The range of elements, in bytes, that `member` sums. The elements are split
/// evenly. The last chunk also has the incomplete last element.
AllReduce::Range AllReduce::chunkOf(size_t member) const {
  uint64_t elements = sum.size() / elementBytes(type);
  auto boundary = [&](size_t i) {
    return i == members.size()
               ? sum.size()
               : elements * i / members.size() * elementBytes(type);
  };
  return {boundary(member), boundary(member + 1)};
}

void AllReduce::postScatter() {
  Range mine = chunkOf(memberIndex);
  for (size_t i = 0; i < contributors.size(); ++i) {
    if (contributors[i] != self) {
      others[i] = scratch.take(mine.size());
      if (mine.size())
        receive({others[i].get(), mine.size()}, contributors[i],
                static_cast<int>(tag), scatter, receives);
      continue;
    }
    for (size_t member = 0; member < members.size(); ++member) {
      Range chunk = chunkOf(member);
      if (member != memberIndex && chunk.size())
        send({own[i] + chunk.begin, chunk.size()}, members[member],
             static_cast<int>(tag), scatter, sends);
    }
  }
}

/// Folds one slice, which takes about 50 µs, so that the calling thread is soon
/// free again.
void AllReduce::foldSlice() {
  constexpr uint64_t kSlice = 128 << 10;
  Range mine = chunkOf(memberIndex);
  uint64_t size = std::min(kSlice, mine.size() - folded);
  std::vector<const std::byte *> sources(own.size());
  for (size_t i = 0; i < own.size(); ++i)
    sources[i] = folded + (own[i] ? own[i] + mine.begin : others[i].get());
  fold(type, sources, sum.data() + mine.begin + folded, size);
  folded += size;
}

void AllReduce::postGather() {
  Range mine = chunkOf(memberIndex);
  for (Block &memory : others)
    if (memory)
      scratch.giveBack(mine.size(), std::move(memory));
  for (size_t member = 0; member < members.size(); ++member) {
    if (member == memberIndex)
      continue;
    Range chunk = chunkOf(member);
    if (chunk.size())
      receive(sum.subspan(chunk.begin, chunk.size()), members[member],
              static_cast<int>(tag), gather, receives);
    if (mine.size())
      send(sum.subspan(mine.begin, mine.size()), members[member],
           static_cast<int>(tag), gather, sends);
  }
}

void AllReduce::advance(bool inTurn) {
  if (phase == Start) {
    postScatter();
    phase = Scatter;
  }
  // Wait for the sends, too: the sum may be a contribution that is still being
  // sent, and the fold overwrites it.
  if (phase == Scatter && inTurn && test(receives) && test(sends))
    phase = Fold;
  if (phase == Fold) {
    foldSlice();
    if (folded < chunkOf(memberIndex).size())
      return;
    postGather();
    phase = Gather;
  }
  if (phase == Gather && test(receives) && test(sends))
    phase = Done;
}
