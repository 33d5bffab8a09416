//===- Hub.cpp - State shared by ranks as threads -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/Hub.h"

#include <algorithm>

using namespace chimera::runtime;
using namespace chimera::runtime::local;

bool Message::withdraw() {
  if (state.load(std::memory_order_acquire) < GivenUp) {
    // The rank drops this message after an error, and may free its bytes after
    // this call. So no thread may use them any more.
    std::unique_lock lock(queue.mutex);
    if (state.load() == Posted) {
      Message **link = &queue.first;
      Message *before = nullptr;
      while (*link && *link != this) {
        before = *link;
        link = &(*link)->next;
      }
      if (*link) {
        *link = next;
        if (queue.last == this)
          queue.last = before;
      }
      return false;
    }
    lock.unlock();
    while (state.load(std::memory_order_acquire) == Moving)
      sched_yield();
  }
  return state.load() >= Done;
}

void Message::expectEqualSizes() const {
  if (state.load() == SizesDiffer)
    throw std::invalid_argument(
        std::string(send ? "send to" : "receive from") + " rank " +
        std::to_string(other) + ": expected " + std::to_string(bytes.size()) +
        " bytes at the other end, got " + std::to_string(otherSize));
}

std::string Message::awaited() const {
  return "rank " + std::to_string(other) + " to " + (send ? "receive" : "send");
}

MessageQueue &Hub::queue(uint32_t self, uint32_t peer, bool isSend) {
  if (peer >= ranks)
    throw std::invalid_argument("expected a rank below " +
                                std::to_string(ranks) + ", got " +
                                std::to_string(peer));
  const uint32_t from = isSend ? self : peer, to = isSend ? peer : self;
  return queues[static_cast<size_t>(from) * ranks + to];
}

Message *Hub::match(Message &mine) {
  MessageQueue &queue = mine.queue;
  std::lock_guard lock(queue.mutex);
  Message *other = queue.first;
  if (other && other->send != mine.send) {
    queue.first = other->next;
    if (!queue.first)
      queue.last = nullptr;
    other->state.store(Message::Moving, std::memory_order_relaxed);
    return other;
  }
  (queue.first ? queue.last->next : queue.first) = &mine;
  queue.last = &mine;
  return nullptr;
}

bool Hub::differ(Message &mine, Message &other) {
  if (mine.size() == other.size())
    return false;
  mine.otherSize = other.size();
  other.otherSize = mine.size();
  return true;
}

void Hub::end(Message &mine, Message &other, Message::State outcome) {
  mine.state.store(outcome, std::memory_order_relaxed);
  // Do not use `other` after this store: its rank may then destroy it.
  other.state.store(outcome, std::memory_order_release);
  notify(mine.other);
}

void Hub::begin(Reduction &reduction, const ReduceGroup &group,
                ElementType type, uint64_t bytes) {
  reduction.type = type;
  reduction.bytes = bytes;
  reduction.contributors = group.contributors;
  reduction.members = membersOf(group);
  reduction.contributions.resize(reduction.contributors.size());
  reduction.sums.resize(reduction.members.size());
}

size_t Hub::join(Reduction &reduction, const ReduceGroup &group,
                 uint64_t number, uint32_t self, ElementType type,
                 std::span<const ConstBytes> given, Bytes sum) {
  if (reduction.bytes != sum.size() || reduction.type != type ||
      reduction.contributors != group.contributors)
    throw std::invalid_argument("all-reduce " + std::to_string(number) +
                                " of group " + std::to_string(group.id) +
                                ": rank " + std::to_string(self) +
                                " starts it with another size, type or members "
                                "than the ranks before it");
  size_t next = 0;
  for (size_t i = 0; i < reduction.contributors.size(); ++i)
    if (reduction.contributors[i] == self)
      reduction.contributions[i] = given[next++].data();
  const auto memberIndex =
      static_cast<size_t>(std::ranges::lower_bound(reduction.members, self) -
                          reduction.members.begin());
  reduction.sums[memberIndex] = sum.data();
  ++reduction.started;
  return memberIndex;
}

/// Whether the waiting rank `self` may poll: every rank has a core, and no
/// other rank ran on this core in its last wait. Also records the core of
/// `self`.
bool Hub::mayPoll(uint32_t self) {
  int here = sched_getcpu();
  events[self].core.store(here, std::memory_order_relaxed);
  if (ranks > cores)
    return false;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    if (rank != self &&
        events[rank].core.load(std::memory_order_relaxed) == here)
      return false;
  return true;
}

void Hub::throwIfAborted() {
  if (!aborted.load(std::memory_order_acquire))
    return;
  std::lock_guard lock(mutex);
  throw WaitError(WaitError::Reason::Aborted, "aborted: " + reason);
}

void Hub::abort(const std::string &given) {
  {
    std::lock_guard lock(mutex);
    if (aborted.load())
      return;
    reason = given;
    aborted.store(true);
  }
  for (RankEvent &event : events)
    event.notify();
}
