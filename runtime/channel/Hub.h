//===- Hub.h - What ranks that are threads share ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How the threads of one process find each other: the ends of messages that
// have no other end yet, the all-reduces that some member has not started, a
// bell for each rank, and the news of an abort. What it takes to move bytes is
// the channels' matter: those of the host copy, those of GPUs put copies on
// streams. In each case whoever comes second moves, for both.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_HUB_H
#define CHIMERA_RUNTIME_CHANNEL_HUB_H

#include "runtime/channel/Channels.h"
#include "runtime/system/Bell.h"
#include "runtime/system/Cores.h"
#include "runtime/system/Deadline.h"

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <sched.h>
#include <utility>

namespace chimera::runtime::local {

inline void pauseCore() {
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

class Message;

/// The unmatched ends of an ordered pair of ranks, oldest first. They are all
/// sends or all receives.
struct alignas(64) Pair {
  Lock mutex;
  Message *first = nullptr;
  Message *last = nullptr;
};

/// One end of a message. Linked into its pair until the other end comes.
class Message : public Request {
public:
  /// A message is GivenUp where whoever moved it failed: that rank says so, and
  /// this one waits on.
  enum State : uint32_t { Posted, Moving, GivenUp, Done, SizesDiffer };

  bool isSend() const { return send; }
  uint32_t peer() const { return other; }
  uint64_t size() const { return bytes.size(); }

  bool hasEnded() const {
    return state.load(std::memory_order_acquire) >= Done;
  }
  /// Throws std::invalid_argument where the sizes of the two ends differ.
  void expectEqualSizes() const;
  /// "rank 3 to send"
  std::string awaited() const;

protected:
  Message(Pair &pair, Bytes bytes, bool isSend, uint32_t peer)
      : bytes(bytes), pair(pair), send(isSend), other(peer) {}

  /// Afterwards nobody matches or moves it any more. Who derives calls it
  /// before ending. Whether it had ended.
  bool withdraw();

  Bytes bytes; ///< which a send only reads

private:
  friend class Hub;
  Pair &pair;
  const bool send;
  const uint32_t other;
  uint64_t otherSize = 0;
  Message *next = nullptr;
  std::atomic<uint32_t> state{Posted};
};

/// One all-reduce, as its members have started it.
struct Reduction {
  virtual ~Reduction() = default;

  ElementType type;
  uint64_t bytes;
  std::vector<uint32_t> givers; ///< the group's contributions
  std::vector<uint32_t> members;
  std::vector<const std::byte *> contributions; ///< by giver
  std::vector<std::byte *> sums;                ///< by member
  uint32_t started = 0;
};

class Hub {
public:
  explicit Hub(uint32_t ranks)
      : ranks(ranks), bells(ranks), pairs(static_cast<size_t>(ranks) * ranks) {}

  const uint32_t ranks;

  /// Where the messages between rank `self` and `peer` in one direction meet.
  /// Throws std::invalid_argument where there is no such peer.
  Pair &pair(uint32_t self, uint32_t peer, bool isSend);

  /// Matches `mine` with the oldest other end. Where there is one, calls
  /// `move(other)`, unless their sizes differ, and ends both; what `move`
  /// throws gives up both. Where there is none, the message waits for one.
  template <typename Kind, typename Move>
  void post(Kind &mine, const Move &move) {
    auto *other = static_cast<Kind *>(match(mine));
    if (!other)
      return;
    Message::State outcome = Message::Done;
    if (differ(mine, *other))
      outcome = Message::SizesDiffer;
    else
      try {
        move(*other);
      } catch (...) {
        end(mine, *other, Message::GivenUp);
        throw;
      }
    end(mine, *other, outcome);
  }

  /// Has `self` take part in all-reduce `number` of the group, which is a
  /// `Kind` of Reduction, after checkAllReduce. Calls `joined(reduction, place,
  /// isLast)` with the rank's place among the members, with `mutex` locked.
  /// Throws std::invalid_argument where the members do not agree.
  template <typename Kind, typename Joined>
  std::shared_ptr<Kind> start(const ReduceGroup &group, uint64_t number,
                              uint32_t self, ElementType type,
                              std::span<const ConstBytes> given, Bytes sum,
                              const Joined &joined) {
    std::pair key(group.id, number);
    std::lock_guard lock(mutex);
    std::shared_ptr<Reduction> &slot = starting[key];
    if (!slot) {
      slot = std::make_shared<Kind>();
      begin(*slot, group, type, sum.size());
    }
    size_t place = join(*slot, group, number, self, type, given, sum);
    auto reduction = std::static_pointer_cast<Kind>(slot);
    const bool isLast = reduction->started == reduction->members.size();
    joined(*reduction, place, isLast);
    if (isLast)
      starting.erase(key);
    return reduction;
  }

  void ring(uint32_t rank) { bells[rank].ring(); }
  void ringOthers(const std::vector<uint32_t> &members, uint32_t self) {
    for (uint32_t member : members)
      if (member != self)
        ring(member);
  }

  /// Polls, yields, then sleeps until `done()`. Polls are few where another
  /// rank may want the core; else they last about as long as it takes to wake a
  /// sleeper on an idle core, which is what they may save. Throws WaitError
  /// when `timeout` passes, with `what()`, or the run is aborted.
  template <typename Done, typename What>
  void waitUntil(uint32_t self, const Done &done,
                 std::chrono::milliseconds timeout, const What &what) {
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
    } while (mayPoll(self) && Clock::now() - *begin < kWaking);
    Deadline deadline(timeout);
    RankBell &bell = bells[self];
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

  void throwIfAborted();
  /// Ends every wait of every rank. The first reason counts.
  void abort(const std::string &reason);

  Lock mutex;

private:
  Message *match(Message &mine);
  static bool differ(Message &mine, Message &other);
  void end(Message &mine, Message &other, Message::State outcome);
  static void begin(Reduction &reduction, const ReduceGroup &group,
                    ElementType type, uint64_t bytes);
  static size_t join(Reduction &reduction, const ReduceGroup &group,
                     uint64_t number, uint32_t self, ElementType type,
                     std::span<const ConstBytes> given, Bytes sum);
  bool mayPoll(uint32_t self);

  const uint32_t cores = findCores().usable;
  std::vector<RankBell> bells;
  std::vector<Pair> pairs;
  /// Those that some member has not started yet, by group and by how many of
  /// that group came before; guarded by `mutex`.
  std::map<std::pair<uint32_t, uint64_t>, std::shared_ptr<Reduction>> starting;
  std::atomic<bool> aborted{false};
  std::string reason; ///< guarded by `mutex`
};

} // namespace chimera::runtime::local

#endif // CHIMERA_RUNTIME_CHANNEL_HUB_H
