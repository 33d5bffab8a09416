//===- Hub.h - State shared by ranks as threads -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The state that ranks share if they are threads of one process. It matches
// their operations. It has the posted sends and receives without a counterpart,
// the all-reduces that some member has not started, a futex for each rank, and
// the reason of an abort. It does not move bytes: the channels of the host copy
// (InProcess.cpp), and the channels of GPUs enqueue copies (cuda/Copies.cpp).
// In both, the rank that posts its end of a message second moves the bytes for
// both ranks.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_HUB_H
#define CHIMERA_RUNTIME_CHANNEL_HUB_H

#include "runtime/channel/Channels.h"
#include "runtime/system/Cores.h"
#include "runtime/system/Deadline.h"
#include "runtime/system/FutexEvent.h"

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

/// A lock that polls before it sleeps. It is for critical sections shorter than
/// a microsecond: waking a sleeping thread takes tens of microseconds.
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

/// The futex on which a rank sleeps while it waits. A thread that completes an
/// operation of the rank notifies the futex. The rank sleeps for at most 50 ms
/// at a time and then checks its deadline.
struct RankEvent : FutexEvent {
  static constexpr std::chrono::milliseconds kLimit{50};
  std::atomic<int> core{-1}; ///< the rank's core in its last wait; -1 before
};

class Message;

/// A list of posted sends or receives from one rank to another whose other end
/// is not posted, oldest first. It never contains both kinds, since a send and
/// a receive would match.
struct alignas(64) MessageQueue {
  Lock mutex;
  Message *first = nullptr;
  Message *last = nullptr;
};

/// One end of a message: its send or its receive. The object is in the list
/// `queue` until the other end is posted.
class Message : public Request {
public:
  /// The states of a message.
  /// - Posted: the other end is not posted.
  /// - Moving: the rank that posted the other end moves the bytes.
  /// - GivenUp: the rank that moved the bytes failed. This rank reports the
  ///   error, and the other rank waits until the run is aborted.
  /// - SizesDiffer: the two ends have different sizes, so no bytes were moved.
  enum State : uint32_t { Posted, Moving, GivenUp, Done, SizesDiffer };

  bool isSend() const { return send; }
  uint32_t peer() const { return other; }
  uint64_t size() const { return bytes.size(); }

  bool hasEnded() const {
    return state.load(std::memory_order_acquire) >= Done;
  }
  /// Throws std::invalid_argument if the two ends have different sizes.
  void expectEqualSizes() const;
  /// The text after "timed out waiting for": "rank 3 to send".
  std::string awaited() const;

protected:
  Message(MessageQueue &queue, Bytes bytes, bool isSend, uint32_t peer)
      : bytes(bytes), queue(queue), send(isSend), other(peer) {}

  /// After this call, no thread matches or moves this message. Every derived
  /// class must call it in its destructor. Returns whether the message had
  /// ended (hasEnded).
  bool withdraw();

  Bytes bytes; ///< memory of the rank; a send only reads it

private:
  friend class Hub;
  MessageQueue &queue;
  const bool send;
  const uint32_t other;
  uint64_t otherSize = 0;
  Message *next = nullptr;
  std::atomic<uint32_t> state{Posted};
};

/// An all-reduce that at least one member has started.
struct Reduction {
  virtual ~Reduction() = default;

  ElementType type;
  uint64_t bytes;
  std::vector<uint32_t> contributors; ///< the rank of each contribution
  std::vector<uint32_t> members;
  /// The memory of each contribution, in the order of `contributors`.
  std::vector<const std::byte *> contributions;
  std::vector<std::byte *> sums; ///< in the order of `members`
  uint32_t started = 0;
};

class Hub {
public:
  explicit Hub(uint32_t ranks)
      : ranks(ranks), events(ranks),
        queues(static_cast<size_t>(ranks) * ranks) {}

  const uint32_t ranks;

  /// The list of messages from `self` to `peer` if `isSend`, else from `peer`
  /// to `self`. Throws std::invalid_argument if `peer` is not a rank.
  MessageQueue &queue(uint32_t self, uint32_t peer, bool isSend);

  /// Matches `mine`, one end of a message, with the oldest opposite end that
  /// waits for it.
  ///
  /// - If there is such an end, calls `move` with it, unless the sizes differ.
  ///   Then sets the final state of both ends: Done, SizesDiffer, or GivenUp if
  ///   `move` throws.
  /// - Otherwise, adds `mine` to its queue, where it waits for the other end.
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

  /// Adds rank `self` to the members that have started all-reduce `number` of
  /// the group. Requires a successful checkAllReduce. `Kind` is derived from
  /// Reduction. While `mutex` is held, calls `joined(reduction, memberIndex,
  /// isLast)`. `memberIndex` is the position of `self` among the members.
  /// `isLast` says that all members have now started the all-reduce. Throws
  /// std::invalid_argument if the members do not agree on size, type and
  /// contributions.
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
    size_t memberIndex = join(*slot, group, number, self, type, given, sum);
    auto reduction = std::static_pointer_cast<Kind>(slot);
    const bool isLast = reduction->started == reduction->members.size();
    joined(*reduction, memberIndex, isLast);
    if (isLast)
      starting.erase(key);
    return reduction;
  }

  void notify(uint32_t rank) { events[rank].notify(); }
  void notifyOthers(const std::vector<uint32_t> &members, uint32_t self) {
    for (uint32_t member : members)
      if (member != self)
        notify(member);
  }

  /// Waits until `done()` returns true: first polls, then yields, then sleeps.
  /// If no other rank needs the core (mayPoll), polls for 50 µs. To wake a
  /// sleeping thread on an idle core would take about as long. Otherwise polls
  /// 64 times. Throws WaitError if `timeout` passes (`what()` is the text of
  /// the awaited event) or if the run is aborted.
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
    RankEvent &event = events[self];
    for (int i = 0;; ++i) {
      uint32_t seen = event.count();
      if (done())
        return;
      throwIfAborted();
      if (deadline.passed())
        throw WaitError(WaitError::Reason::TimedOut,
                        timeoutMessage(timeout, what()));
      if (i < kYields)
        sched_yield();
      else
        event.sleep(seen, RankEvent::kLimit);
    }
  }

  void throwIfAborted();
  /// Ends every wait of every rank with a WaitError. Only the first call sets
  /// the reason.
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
  std::vector<RankEvent> events;
  std::vector<MessageQueue> queues;
  /// The all-reduces that some member has not started, by group and number of
  /// the all-reduce within the group. Guarded by `mutex`.
  std::map<std::pair<uint32_t, uint64_t>, std::shared_ptr<Reduction>> starting;
  std::atomic<bool> aborted{false};
  std::string reason; ///< guarded by `mutex`
};

} // namespace chimera::runtime::local

#endif // CHIMERA_RUNTIME_CHANNEL_HUB_H
