//===- InProcess.cpp - Ranks as threads of one process --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/InProcess.h"

#include "runtime/device/Fold.h"
#include "runtime/system/Bell.h"
#include "runtime/system/Cores.h"
#include "runtime/system/Deadline.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <linux/futex.h>
#include <map>
#include <mutex>
#include <optional>
#include <sched.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

using namespace chimera::runtime;

namespace {
void pauseCore() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// For what is locked for less than a microsecond: waking who sleeps on it
/// would take tens.
class Lock {
public:
  void lock() {
    constexpr int kTries = 100;
    for (int i = 0; i < kTries; ++i) {
      if (mutex.try_lock())
        return;
      pauseCore();
    }
    mutex.lock();
  }
  void unlock() { mutex.unlock(); }

private:
  std::mutex mutex;
};

/// Of a rank: whoever completes one of its operations rings. It sleeps for at
/// most 50 ms, after which it looks at its deadline.
struct RankBell : Bell {
  static constexpr std::chrono::milliseconds kLimit{50};
  std::atomic<int> core{-1}; ///< where the rank was seen last
};

struct Pair;

/// One end of a message. Linked into its pair until the other end comes.
struct Message final : Request {
  enum State : uint32_t { Posted, Copying, Done, SizesDiffer };

  Message(Pair &pair, std::byte *bytes, Block *memory, uint64_t size,
          bool isSend, uint32_t owner, uint32_t peer)
      : pair(pair), bytes(bytes), memory(memory), size(size), isSend(isSend),
        owner(owner), peer(peer) {}
  ~Message() override;

  Pair &pair;
  std::byte *bytes;
  Block *memory; ///< what holds them, if that may be exchanged
  uint64_t size;
  uint64_t otherSize = 0;
  bool isSend;
  uint32_t owner;
  uint32_t peer;
  Message *next = nullptr;
  std::atomic<uint32_t> state{Posted};
};

/// The unmatched ends of an ordered pair of ranks, oldest first. They are all
/// sends or all receives.
struct alignas(64) Pair {
  Lock mutex;
  Message *first = nullptr;
  Message *last = nullptr;
};

Message::~Message() {
  if (state.load(std::memory_order_acquire) >= Done)
    return;
  // Given up, after an error: nobody may copy into or out of it any more.
  {
    std::lock_guard lock(pair.mutex);
    if (state.load() == Posted) {
      Message **link = &pair.first;
      Message *before = nullptr;
      while (*link && *link != this) {
        before = *link;
        link = &(*link)->next;
      }
      if (*link) {
        *link = next;
        if (pair.last == this)
          pair.last = before;
      }
      return;
    }
  }
  while (state.load(std::memory_order_acquire) == Copying)
    sched_yield();
}

/// One all-reduce, shared by its members. Whoever folds a chunk reads it from
/// every contribution and writes it to every member's sum, so no chunk is read
/// after it is written.
struct Reduction {
  static constexpr uint64_t kChunk = 64 * 1024;

  ElementType type;
  uint64_t bytes;
  std::vector<uint32_t> givers; // the group's contributions
  std::vector<uint32_t> members;
  std::vector<const std::byte *> contributions; // by giver
  std::vector<std::byte *> sums;                // by member
  uint32_t started = 0;                         // guarded by the hub's mutex
  uint64_t chunks = 0;

  std::atomic<bool> ready{false};
  std::atomic<bool> cancelled{false};
  std::atomic<uint64_t> claimed{0};
  std::atomic<uint64_t> folded{0};
  std::atomic<uint32_t> folding{0};

  bool done() const {
    return ready.load(std::memory_order_acquire) &&
           folded.load(std::memory_order_acquire) == chunks;
  }

  /// Folds one unclaimed chunk; true if it was the last to complete. Sets
  /// `found` to whether there was one.
  bool foldOne(bool &found) {
    found = false;
    folding.fetch_add(1);
    bool last = false;
    if (!cancelled.load()) {
      uint64_t chunk = claimed.fetch_add(1);
      if (chunk < chunks) {
        found = true;
        uint64_t at = chunk * kChunk;
        uint64_t size = std::min(kChunk, bytes - at);
        std::vector<const std::byte *> sources(contributions);
        for (const std::byte *&source : sources)
          source += at;
        fold(type, sources, sums[0] + at, size);
        for (size_t i = 1; i < sums.size(); ++i)
          std::memcpy(sums[i] + at, sums[0] + at, size);
        last = folded.fetch_add(1) + 1 == chunks;
      }
    }
    folding.fetch_sub(1);
    return last;
  }
};

struct ReductionRequest final : Request {
  std::shared_ptr<Reduction> reduction;
  uint32_t group = 0;
  ~ReductionRequest() override {
    if (reduction->done())
      return;
    reduction->cancelled.store(true);
    while (reduction->folding.load() != 0)
      sched_yield();
  }
};

/// What the ranks share.
class Hub {
public:
  explicit Hub(uint32_t ranks)
      : ranks(ranks), bells(ranks), pairs(static_cast<size_t>(ranks) * ranks) {}

  Pair &pair(uint32_t from, uint32_t to) {
    return pairs[static_cast<size_t>(from) * ranks + to];
  }

  /// Whether a rank that waits may keep its core busy: it takes it from no
  /// other rank. Says where the rank `self` runs.
  bool mayPoll(uint32_t self) {
    int here = sched_getcpu();
    bells[self].core.store(here, std::memory_order_relaxed);
    if (ranks > cores)
      return false;
    for (uint32_t rank = 0; rank < ranks; ++rank)
      if (rank != self &&
          bells[rank].core.load(std::memory_order_relaxed) == here)
        return false;
    return true;
  }

  void ringAll() {
    for (RankBell &bell : bells)
      bell.ring();
  }

  const uint32_t ranks;
  const uint32_t cores = findCores().usable;
  std::vector<RankBell> bells;
  std::vector<Pair> pairs;

  // Reductions that some member has not started yet, by group and by how many
  // of that group came before.
  Lock mutex;
  std::map<std::pair<uint32_t, uint64_t>, std::shared_ptr<Reduction>> starting;

  std::atomic<bool> aborted{false};
  std::string reason; // guarded by mutex
};

class InProcess final : public Channels {
public:
  InProcess(std::shared_ptr<Hub> hub, uint32_t self)
      : hub(std::move(hub)), self(self) {}

  uint32_t rank() const override { return self; }
  uint32_t ranks() const override { return hub->ranks; }

  std::unique_ptr<Request> postSend(uint32_t to, ConstBytes bytes,
                                    Event) override {
    return post(to, const_cast<std::byte *>(bytes.data()), nullptr,
                bytes.size(), true);
  }
  std::unique_ptr<Request> postReceive(uint32_t from, Bytes bytes,
                                       Event) override {
    return post(from, bytes.data(), nullptr, bytes.size(), false);
  }
  std::unique_ptr<Request> handOver(uint32_t to, Block &memory, uint64_t size,
                                    Event) override {
    return post(to, memory.get(), &memory, size, true);
  }
  std::unique_ptr<Request> takeOver(uint32_t from, Block &memory, uint64_t size,
                                    Event) override {
    return post(from, memory.get(), &memory, size, false);
  }

  std::unique_ptr<Request> startAllReduce(const ReduceGroup &group,
                                          ElementType type,
                                          std::vector<ConstBytes> given,
                                          Bytes sum, Event) override;

  void wait(Queue &, std::unique_ptr<Request> request,
            std::chrono::milliseconds timeout) override;

  void abort(const std::string &reason) override {
    {
      std::lock_guard lock(hub->mutex);
      if (hub->aborted.load())
        return;
      hub->reason = reason;
      hub->aborted.store(true);
    }
    hub->ringAll();
  }

private:
  std::unique_ptr<Request> post(uint32_t peer, std::byte *bytes, Block *memory,
                                uint64_t size, bool isSend);
  template <typename Done, typename What>
  void waitUntil(Done done, std::chrono::milliseconds timeout, What what);
  void throwIfAborted();
  void finish(const Message &message);

  std::shared_ptr<Hub> hub;
  uint32_t self;
  std::map<uint32_t, uint64_t> startedOfGroup;
};
} // namespace

std::unique_ptr<Request> InProcess::post(uint32_t peer, std::byte *bytes,
                                         Block *memory, uint64_t size,
                                         bool isSend) {
  if (peer >= hub->ranks)
    throw std::invalid_argument("expected a rank below " +
                                std::to_string(hub->ranks) + ", got " +
                                std::to_string(peer));
  Pair &pair = isSend ? hub->pair(self, peer) : hub->pair(peer, self);
  auto message =
      std::make_unique<Message>(pair, bytes, memory, size, isSend, self, peer);
  Message *other = nullptr;
  {
    std::lock_guard lock(pair.mutex);
    if (pair.first && pair.first->isSend != isSend) {
      other = pair.first;
      pair.first = other->next;
      if (!pair.first)
        pair.last = nullptr;
      other->state.store(Message::Copying, std::memory_order_relaxed);
    } else {
      (pair.first ? pair.last->next : pair.first) = message.get();
      pair.last = message.get();
    }
  }
  if (!other)
    return message;

  Message::State outcome = Message::Done;
  if (other->size != size) {
    outcome = Message::SizesDiffer;
    message->otherSize = other->size;
    other->otherSize = size;
  } else if (memory && other->memory) {
    memory->swap(*other->memory);
  } else if (size) {
    if (isSend)
      std::memcpy(other->bytes, bytes, size);
    else
      std::memcpy(bytes, other->bytes, size);
  }
  message->state.store(outcome, std::memory_order_relaxed);
  // The other end may be gone as soon as its state is stored.
  other->state.store(outcome, std::memory_order_release);
  hub->bells[peer].ring();
  return message;
}

std::unique_ptr<Request>
InProcess::startAllReduce(const ReduceGroup &group, ElementType type,
                          std::vector<ConstBytes> given, Bytes sum, Event) {
  checkAllReduce(group, self, type, given, sum);
  auto request = std::make_unique<ReductionRequest>();
  request->group = group.id;
  std::pair key(group.id, startedOfGroup[group.id]++);
  bool complete = false;
  {
    std::lock_guard lock(hub->mutex);
    std::shared_ptr<Reduction> &slot = hub->starting[key];
    if (!slot) {
      slot = std::make_shared<Reduction>();
      slot->type = type;
      slot->bytes = sum.size();
      slot->givers = group.contributions;
      slot->members = membersOf(group);
      slot->contributions.resize(group.contributions.size());
      slot->sums.resize(slot->members.size());
      slot->chunks = (sum.size() + Reduction::kChunk - 1) / Reduction::kChunk;
    }
    request->reduction = slot;
    Reduction &reduction = *slot;
    if (reduction.bytes != sum.size() || reduction.type != type ||
        reduction.givers != group.contributions)
      throw std::invalid_argument(
          "all-reduce " + std::to_string(key.second) + " of group " +
          std::to_string(group.id) + ": rank " + std::to_string(self) +
          " starts it with other bytes, type or members than those before");
    size_t next = 0;
    for (size_t i = 0; i < group.contributions.size(); ++i)
      if (group.contributions[i] == self)
        reduction.contributions[i] = given[next++].data();
    size_t place = std::lower_bound(reduction.members.begin(),
                                    reduction.members.end(), self) -
                   reduction.members.begin();
    reduction.sums[place] = sum.data();
    if (++reduction.started == reduction.members.size()) {
      reduction.ready.store(true, std::memory_order_release);
      hub->starting.erase(key);
      complete = true;
    }
  }
  if (complete)
    for (uint32_t member : request->reduction->members)
      if (member != self)
        hub->bells[member].ring();
  return request;
}

void InProcess::throwIfAborted() {
  if (!hub->aborted.load(std::memory_order_acquire))
    return;
  std::lock_guard lock(hub->mutex);
  throw WaitError(WaitError::Reason::Aborted, "aborted: " + hub->reason);
}

/// Polls, yields, then sleeps until `done()`. Polls are few where another rank
/// may want the core; else they last about as long as it takes to wake a
/// sleeper on an idle core, which is what they may save.
template <typename Done, typename What>
void InProcess::waitUntil(Done done, std::chrono::milliseconds timeout,
                          What what) {
  using Clock = std::chrono::steady_clock;
  constexpr int kPolls = 64, kYields = 2;
  constexpr std::chrono::microseconds kWaking(50);
  std::optional<Clock::time_point> begin;
  do {
    for (int i = 0; i < kPolls; ++i) {
      if (done())
        return;
      pauseCore();
    }
    if (!begin)
      begin = Clock::now();
  } while (hub->mayPoll(self) && Clock::now() - *begin < kWaking);
  Deadline deadline(timeout);
  RankBell &bell = hub->bells[self];
  for (int i = 0;; ++i) {
    uint32_t seen = bell.count();
    if (done())
      return;
    throwIfAborted();
    if (deadline.passed())
      throw WaitError(WaitError::Reason::TimedOut, timedOut(timeout, what()));
    if (i < kYields)
      sched_yield();
    else
      bell.sleep(seen, RankBell::kLimit);
  }
}

void InProcess::finish(const Message &message) {
  if (message.state.load() == Message::SizesDiffer)
    throw std::invalid_argument(
        std::string(message.isSend ? "send to" : "receive from") + " rank " +
        std::to_string(message.peer) + ": expected " +
        std::to_string(message.size) + " bytes at the other end, got " +
        std::to_string(message.otherSize));
}

void InProcess::wait(Queue &, std::unique_ptr<Request> request,
                     std::chrono::milliseconds timeout) {
  throwIfAborted();
  if (auto *message = dynamic_cast<Message *>(request.get())) {
    waitUntil(
        [&] {
          return message->state.load(std::memory_order_acquire) >=
                 Message::Done;
        },
        timeout,
        [&] {
          return "rank " + std::to_string(message->peer) + " to " +
                 (message->isSend ? "receive" : "send");
        });
    return finish(*message);
  }
  auto &reduction = *dynamic_cast<ReductionRequest &>(*request).reduction;
  uint32_t group = static_cast<ReductionRequest &>(*request).group;
  waitUntil(
      [&] {
        if (!reduction.ready.load(std::memory_order_acquire))
          return false;
        bool found = true;
        while (found)
          if (reduction.foldOne(found))
            for (uint32_t member : reduction.members)
              if (member != self)
                hub->bells[member].ring();
        return reduction.done();
      },
      timeout,
      [&] { return "the all-reduce of group " + std::to_string(group); });
}

std::vector<std::unique_ptr<Channels>>
chimera::runtime::makeInProcessChannels(uint32_t ranks) {
  auto hub = std::make_shared<Hub>(ranks);
  std::vector<std::unique_ptr<Channels>> channels;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    channels.push_back(std::make_unique<InProcess>(hub, rank));
  return channels;
}
