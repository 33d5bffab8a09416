//===- AllReduce.cpp - An ordered all-reduce over TCP ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/tcp/AllReduce.h"

#include "runtime/channel/tcp/Streams.h"
#include "runtime/device/Fold.h"

#include <algorithm>

using namespace chimera::runtime;
using namespace chimera::runtime::tcp;

Block SlicePool::take() {
  {
    std::lock_guard lock(mutex);
    if (!spare.empty()) {
      Block slice = std::move(spare.back());
      spare.pop_back();
      return slice;
    }
    ++made;
  }
  return makeBlock(bytesOfSlice);
}

void SlicePool::giveBack(Block slice) {
  std::lock_guard lock(mutex);
  spare.push_back(std::move(slice));
}

size_t SlicePool::count() {
  std::lock_guard lock(mutex);
  return made;
}

AllReduce::AllReduce(Mesh &mesh, const ReduceGroup &group, uint64_t number,
                     ElementType type, std::vector<ConstBytes> given, Bytes sum,
                     std::shared_ptr<SlicePool> slices)
    : mesh(mesh), type(type), contributors(group.contributors),
      members(membersOf(group)), given(std::move(given)), sum(sum),
      scatter(Streams::scatter(group.id, number)),
      gather(Streams::gather(group.id, number)), slices(std::move(slices)) {
  memberIndex = static_cast<size_t>(
      std::ranges::lower_bound(members, mesh.rank()) - members.begin());
  others = contributors.size() - this->given.size();
}

AllReduce::~AllReduce() { freeStaging(); }

void AllReduce::freeStaging() {
  for (Block &slice : staging)
    slices->giveBack(std::move(slice));
  staging.clear();
}

/// The range of elements, in bytes, that `member` sums. The chunks have the
/// same number of 8-byte words, except that the last chunks may be shorter or
/// empty.
AllReduce::Range AllReduce::chunkOf(size_t member) const {
  constexpr uint64_t kWord = 8;
  uint64_t words = (sum.size() + kWord - 1) / kWord;
  uint64_t each = (words + members.size() - 1) / members.size() * kWord;
  uint64_t begin = std::min<uint64_t>(member * each, sum.size());
  return {begin, std::min<uint64_t>(begin + each, sum.size())};
}

AllReduce::Range AllReduce::sliceOf(size_t member, uint64_t slice) const {
  Range chunk = chunkOf(member);
  uint64_t begin = chunk.begin + slice * slices->bytesOfSlice;
  return {begin, std::min(begin + slices->bytesOfSlice, chunk.end)};
}

uint64_t AllReduce::slicesOf(size_t member) const {
  return (chunkOf(member).size() + slices->bytesOfSlice - 1) /
         slices->bytesOfSlice;
}

/// The number of messages that this rank posts (without receives of
/// contributions) plus the number of slices that it folds.
uint64_t AllReduce::operations() const {
  // Each slice of this rank's own chunk is folded once, and its sum is sent to
  // all other members. Receives of contributions complete before the fold, so
  // they need no count of their own.
  uint64_t all = slicesOf(memberIndex) * members.size();
  for (size_t member = 0; member < members.size(); ++member)
    if (member != memberIndex)
      all += slicesOf(member) * (given.size() + 1);
  return all;
}

void AllReduce::start() try {
  left.fetch_add(operations());
  uint64_t own = slicesOf(memberIndex), most = 0;
  for (size_t i = 0; i < others * std::min(own, kDepth); ++i)
    staging.push_back(slices->take());
  // Post all receives before the sends, so that the other members' sends need
  // not wait. This order is also safe if the sum is a contribution: a member
  // sends its chunk of the sum only after it has received this rank's
  // contribution to this chunk.
  for (size_t member = 0; member < members.size(); ++member) {
    most = std::max(most, slicesOf(member));
    for (uint64_t i = 0; member != memberIndex && i < slicesOf(member); ++i) {
      Range slice = sliceOf(member, i);
      keep(mesh.receiveWithoutCredit(members[member], gather,
                                     sum.subspan(slice.begin, slice.size()),
                                     countDown()));
    }
  }
  for (uint64_t i = 0; i < std::min(own, kDepth); ++i)
    receiveSlice(i);
  {
    std::lock_guard lock(mutex);
    mayFold = true;
  }
  mesh.sendCredits();
  for (uint64_t i = 0; i < most; ++i)
    for (size_t member = 0; member < members.size(); ++member) {
      if (member == memberIndex || i >= slicesOf(member))
        continue;
      Range slice = sliceOf(member, i);
      for (ConstBytes contribution : given)
        keep(mesh.send(members[member], scatter,
                       contribution.subspan(slice.begin, slice.size()),
                       countDown()));
    }
  // Slices may have arrived before they could be folded. If all contributions
  // are this rank's, none arrives.
  foldArrivedSlices();
  countDown()();
} catch (...) {
  abandon();
  throw;
}

std::byte *AllReduce::memoryOf(size_t other, uint64_t slice) const {
  return staging[slice % kDepth * others + other].get();
}

/// Posts the receives for one slice of this rank's chunk: one receive for each
/// contribution of another rank.
void AllReduce::receiveSlice(uint64_t slice) {
  {
    std::lock_guard lock(mutex);
    missing[slice % kDepth] = others;
  }
  size_t other = 0;
  for (uint32_t contributor : contributors)
    if (contributor != mesh.rank())
      keep(mesh.receiveWithoutCredit(
          contributor, scatter,
          {memoryOf(other++, slice), sliceOf(memberIndex, slice).size()},
          [self = shared_from_this(), slice] { self->arrived(slice); }));
}

void AllReduce::arrived(uint64_t slice) {
  {
    std::lock_guard lock(mutex);
    --missing[slice % kDepth];
  }
  foldArrivedSlices();
}

/// The right to fold slices. At most one thread has it at a time.
class AllReduce::FoldLock {
public:
  explicit FoldLock(AllReduce &owner) : owner(owner) {
    std::lock_guard lock(owner.mutex);
    isMine = owner.mayFold && !owner.isFolding && !owner.isAbandoned &&
             owner.folded < owner.slicesOf(owner.memberIndex) &&
             owner.missing[owner.folded % kDepth] == 0;
    owner.isFolding |= isMine;
  }
  ~FoldLock() {
    if (!isMine)
      return;
    std::lock_guard lock(owner.mutex);
    owner.isFolding = false;
    owner.foldEnded.notify_all();
  }
  FoldLock(const FoldLock &) = delete;
  FoldLock &operator=(const FoldLock &) = delete;
  explicit operator bool() const { return isMine; }

private:
  AllReduce &owner;
  bool isMine;
};

void AllReduce::foldArrivedSlices() {
  // If another thread is folding, this thread returns. No slice is forgotten:
  // the other thread checks for more slices after each fold.
  while (FoldLock lock{*this}) {
    uint64_t slice = folded;
    foldSlice(slice);
    {
      std::lock_guard lock(mutex);
      ++folded;
    }
    if (slice + kDepth < slicesOf(memberIndex)) {
      receiveSlice(slice + kDepth);
      mesh.sendCredits();
    }
    if (slice + 1 == slicesOf(memberIndex))
      freeStaging();
    sendSum(slice);
    countDown()();
  }
}

void AllReduce::foldSlice(uint64_t slice) {
  Range range = sliceOf(memberIndex, slice);
  std::vector<const std::byte *> summands;
  size_t nextGiven = 0, nextOther = 0;
  for (uint32_t contributor : contributors)
    summands.push_back(contributor == mesh.rank()
                           ? given[nextGiven++].data() + range.begin
                           : memoryOf(nextOther++, slice));
  fold(type, summands, sum.data() + range.begin, range.size());
}

void AllReduce::sendSum(uint64_t slice) {
  Range range = sliceOf(memberIndex, slice);
  for (size_t member = 0; member < members.size(); ++member)
    if (member != memberIndex)
      keep(mesh.send(members[member], gather,
                     sum.subspan(range.begin, range.size()), countDown()));
}

std::function<void()> AllReduce::countDown() {
  return [self = shared_from_this()] {
    self->left.fetch_sub(1, std::memory_order_acq_rel);
  };
}

void AllReduce::keep(SharedMeshOperation operation) {
  std::lock_guard lock(mutex);
  posted.push_back(std::move(operation));
  if (isAbandoned)
    mesh.abandon(posted.back());
}

void AllReduce::abandon() {
  std::vector<SharedMeshOperation> all;
  {
    std::unique_lock lock(mutex);
    isAbandoned = true;
    foldEnded.wait(lock, [this] { return !isFolding; });
    all = std::move(posted);
  }
  for (const SharedMeshOperation &operation : all)
    mesh.abandon(operation);
}
