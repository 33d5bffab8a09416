//===- Channels.cpp - Ranks as processes of an MPI job --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MPI moves bytes only while a thread is inside an MPI call, and its blocking
// calls spin. So a wait tests, yields and naps instead, and it advances all
// outstanding all-reduces of the rank. While the rank computes, its progress
// thread (if it has one) advances everything that is in flight.
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/mpi/Channels.h"

#include "runtime/channel/mpi/AllReduce.h"
#include "runtime/channel/mpi/Backoff.h"
#include "runtime/channel/mpi/CallLock.h"
#include "runtime/channel/mpi/ProgressThread.h"
#include "runtime/channel/mpi/TransportAllReduce.h"
#include "runtime/system/Deadline.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <optional>

using namespace chimera::runtime;

namespace {
/// The name that mpi::enter gets for calls that advance all-reduces.
constexpr const char *kAllReduce = "MPI (in an all-reduce)";

class MpiChannels;

/// An operation of this rank. It is included in MpiChannels::open until its
/// wait succeeds or it is destroyed.
struct Operation : Request {
  explicit Operation(MpiChannels &channels);
  ~Operation() override { close(); }

  /// The text after "timed out waiting for": "rank 3 to send".
  virtual std::string awaited() const = 0;

  void close();

  MpiChannels &channels;
  std::atomic<bool> done{false}; ///< all its bytes have been moved

private:
  bool open = true;
};

/// A send or a receive. Only the rank's thread uses it.
struct Message final : Operation {
  Message(MpiChannels &channels, uint64_t size, bool isSend, uint32_t peer)
      : Operation(channels), size(size), isSend(isSend), peer(peer) {}
  ~Message() override {
    if (requests.empty())
      return;
    auto call = mpi::enter("MPI_Cancel");
    mpi::abandon(requests, !isSend);
  }

  std::string awaited() const override {
    return "rank " + std::to_string(peer) + " to " +
           (isSend ? "receive" : "send");
  }
  void advance();

  std::vector<MPI_Request> requests;
  const uint64_t size;
  const bool isSend;
  const uint32_t peer;

private:
  uint64_t received = 0;
};

struct Reduction final : Operation {
  using Operation::Operation;
  ~Reduction() override;

  std::string awaited() const override {
    return "the all-reduce of group " + std::to_string(sum->group());
  }

  std::unique_ptr<mpi::PendingAllReduce> sum;
};

class MpiChannels final : public Channels {
public:
  explicit MpiChannels(const MpiOptions &options);
  ~MpiChannels() override;

  uint32_t rank() const override { return self; }
  uint32_t ranks() const override { return size; }

  std::unique_ptr<Request> postSend(uint32_t to, ConstBytes bytes,
                                    Event) override {
    auto message =
        std::make_unique<Message>(*this, bytes.size(), true, checked(to));
    auto call = mpi::enter("MPI_Isend");
    mpi::send(bytes, to, 0, messages, message->requests,
              modeOfNextSend(to, bytes.size()));
    threadHasWork = true;
    return message;
  }
  std::unique_ptr<Request> postReceive(uint32_t from, Bytes bytes,
                                       Event) override {
    auto message =
        std::make_unique<Message>(*this, bytes.size(), false, checked(from));
    auto call = mpi::enter("MPI_Irecv");
    mpi::receive(bytes, from, 0, messages, message->requests);
    threadHasWork = true;
    return message;
  }

  std::unique_ptr<Request> startAllReduce(const ReduceGroup &group,
                                          ElementType type,
                                          std::vector<ConstBytes> given,
                                          Bytes sum, Event) override {
    checkAllReduce(group, self, type, given, sum);
    if (group.id > largestTag)
      throw std::invalid_argument("expected a group number up to " +
                                  std::to_string(largestTag) + ", got " +
                                  std::to_string(group.id));
    if (uint32_t last = std::ranges::max(group.contributors); last >= size)
      throw std::invalid_argument(
          "group " + std::to_string(group.id) + ": expected ranks below " +
          std::to_string(size) + ", got " + std::to_string(last));
    auto reduction = std::make_unique<Reduction>(*this);
    {
      mpi::PriorityLock lock(reducing);
      if (auto own = collectives.find(group.id); own != collectives.end())
        reduction->sum = std::make_unique<mpi::TransportAllReduce>(
            group, type, std::move(given), sum, own->second);
      else
        reduction->sum = std::make_unique<mpi::AllReduce>(
            group, self, type, std::move(given), sum, scatter, gather, scratch);
      // To start an all-reduce may take milliseconds, because MPI may copy
      // before it returns. So if there is a progress thread, the progress
      // thread starts the all-reduce.
      if (!thread) {
        auto call = mpi::enter(kAllReduce);
        reduction->sum->advance(false);
      }
      reductions.push_back(reduction.get());
    }
    threadHasWork = true;
    return reduction;
  }

  void beginComputing() override {
    if (thread && open.load() > 0 && std::exchange(threadHasWork, false))
      thread->wake();
  }

  void prepare(const Communication &communication) override;

  void wait(Queue &, std::unique_ptr<Request> request,
            std::chrono::milliseconds timeout) override;

  std::vector<CallMark::Call> callsInFlight() const override {
    return mpi::callsInFlight();
  }

  void abort(const std::string &reason) override;

  /// Removes a reduction from the list `reductions`, if it is there. Ends its
  /// MPI operations.
  void end(Reduction &reduction) {
    mpi::PriorityLock lock;
    if (std::ranges::count(reductions, &reduction)) {
      lock = mpi::PriorityLock(reducing);
      std::erase(reductions, &reduction);
    }
    auto call = mpi::enter(kAllReduce);
    reduction.sum.reset();
  }

  std::atomic<uint32_t> open{0}; ///< number of operations that are not closed

private:
  uint32_t checked(uint32_t peer) const {
    if (peer >= size)
      throw std::invalid_argument("expected a rank below " +
                                  std::to_string(size) + ", got " +
                                  std::to_string(peer));
    return peer;
  }
  mpi::SendMode modeOfNextSend(uint32_t to, uint64_t size);
  void advanceReductions();
  bool drive();
  bool finished(Operation &operation, Message *message);
  void throwIfAborted();

  uint32_t self = 0;
  uint32_t size = 0;
  uint32_t largestTag = 0;
  // Messages and the two exchanges of all-reduces have separate communicators,
  // so that a send of one kind cannot match a receive of another.
  MPI_Comm messages, scatter, gather;
  /// For each rank, the bytes that this rank has sent to it since the last
  /// synchronous send.
  std::vector<uint64_t> sentAhead;
  // If MPI computes the sums: a communicator for each group of `prepare` that
  // has this rank as a member.
  const bool transportAllReduce;
  std::map<uint32_t, MPI_Comm> collectives;
  // Guards the reductions, their members and `failure`. Only the rank's thread
  // changes the list `reductions`. So the rank's thread may check without the
  // lock whether the list is empty.
  mpi::PriorityMutex reducing;
  mpi::ScratchPool scratch;
  std::vector<Reduction *> reductions; ///< that may not be done; oldest first
  std::exception_ptr failure;          ///< thrown on the progress thread
  // Any MPI_Test makes progress on all requests. The progress thread tests this
  // receive, which no send matches, so it never touches a request of the rank.
  MPI_Request progressRequest = MPI_REQUEST_NULL;

  std::mutex mutex;
  std::string reason; // guarded by mutex
  std::atomic<bool> isAborted{false};

  std::optional<mpi::ProgressThread> thread;
  /// Whether the rank has posted or waited since it last woke the thread.
  bool threadHasWork = true;
};
} // namespace

Operation::Operation(MpiChannels &channels) : channels(channels) {
  channels.open.fetch_add(1);
}

void Operation::close() {
  if (std::exchange(open, false))
    channels.open.fetch_sub(1);
}

/// Throws if a receive got fewer bytes than it expects. MPI itself accepts
/// fewer bytes.
void Message::advance() {
  while (!requests.empty()) {
    int flag = 0;
    MPI_Status status;
    mpi::check(MPI_Test(&requests.front(), &flag, &status), "MPI_Test");
    if (!flag)
      return;
    int got = 0;
    if (!isSend)
      mpi::check(MPI_Get_count(&status, MPI_BYTE, &got), "MPI_Get_count");
    received += static_cast<uint64_t>(got);
    requests.erase(requests.begin());
  }
  if (!isSend && received != size)
    throw std::invalid_argument("receive from rank " + std::to_string(peer) +
                                ": expected " + std::to_string(size) +
                                " bytes at the other end, got " +
                                std::to_string(received));
  done = true;
}

Reduction::~Reduction() { channels.end(*this); }

MpiChannels::MpiChannels(const MpiOptions &options)
    : transportAllReduce(options.transportAllReduce) {
  auto call = mpi::enter("MPI_Comm_dup");
  int number = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &number);
  self = static_cast<uint32_t>(number);
  MPI_Comm_size(MPI_COMM_WORLD, &number);
  size = static_cast<uint32_t>(number);
  sentAhead.resize(size);
  for (MPI_Comm *communicator : {&messages, &scatter, &gather})
    *communicator = mpi::duplicateWorld();
  void *value = nullptr;
  int found = 0;
  MPI_Comm_get_attr(scatter, MPI_TAG_UB, &value, &found);
  largestTag =
      found ? static_cast<uint32_t>(*static_cast<int *>(value)) : 32767;
  if (!options.progressThread)
    return;
  constexpr int kNeverSent = 1;
  mpi::check(MPI_Irecv(nullptr, 0, MPI_BYTE, static_cast<int>(self), kNeverSent,
                       messages, &progressRequest),
             "MPI_Irecv");
  thread.emplace([this] { return drive(); });
}

MpiChannels::~MpiChannels() {
  thread.reset();
  auto call = mpi::enter("MPI_Comm_free");
  std::vector<MPI_Request> last{progressRequest};
  mpi::abandon(last, true);
  // Freeing a communicator is a collective call. After an abort the other ranks
  // may not make it, so leak the communicators.
  if (isAborted)
    return;
  for (auto &[group, communicator] : collectives)
    MPI_Comm_free(&communicator);
  for (MPI_Comm *communicator : {&messages, &scatter, &gather})
    MPI_Comm_free(communicator);
}

void MpiChannels::prepare(const Communication &communication) {
  if (!transportAllReduce)
    return;
  auto call = mpi::enter("MPI_Comm_create_group");
  MPI_Group all;
  MPI_Comm_group(gather, &all);
  for (const ReduceGroup &group : communication.groups) {
    std::vector<uint32_t> ranks = membersOf(group);
    std::vector<int> members(ranks.begin(), ranks.end());
    if (members.size() < 2 || !std::ranges::count(ranks, self))
      continue;
    MPI_Group some;
    mpi::check(MPI_Group_incl(all, static_cast<int>(members.size()),
                              members.data(), &some),
               "MPI_Group_incl");
    MPI_Comm communicator;
    mpi::check(MPI_Comm_create_group(gather, some, 0, &communicator),
               "MPI_Comm_create_group");
    MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
    collectives.emplace(group.id, communicator);
    MPI_Group_free(&some);
  }
  MPI_Group_free(&all);
}

/// MPI stores short messages at a receiver that has not asked for them, without
/// a limit. So after some bytes, a send is synchronous. Messages match their
/// receives in order. So when a synchronous send has ended, the receiver has
/// asked for all earlier messages too.
mpi::SendMode MpiChannels::modeOfNextSend(uint32_t to, uint64_t size) {
  constexpr uint64_t kSendAhead = 64 << 10;
  constexpr uint64_t kOverhead = 64; // of a stored message
  sentAhead[to] += size + kOverhead;
  if (sentAhead[to] < kSendAhead)
    return mpi::SendMode::Standard;
  sentAhead[to] = 0;
  return mpi::SendMode::Synchronous;
}

/// Requires the lock `reducing`, and that the calling thread may call MPI.
void MpiChannels::advanceReductions() {
  // The messages of a group's all-reduces have the same tag, so they must be
  // posted in order: only the oldest all-reduce that has not posted all its
  // messages is in turn.
  std::vector<uint32_t> blocked;
  for (Reduction *reduction : reductions) {
    mpi::PendingAllReduce &sum = *reduction->sum;
    bool inTurn =
        std::find(blocked.begin(), blocked.end(), sum.group()) == blocked.end();
    sum.advance(inTurn);
    if (!sum.postedAll())
      blocked.push_back(sum.group());
    if (sum.done())
      reduction->done.store(true);
  }
}

/// One iteration of the progress thread. Returns false if no operation is in
/// flight or an all-reduce has failed.
bool MpiChannels::drive() {
  if (auto call = mpi::tryToEnter("MPI_Test")) {
    int flag = 0;
    MPI_Test(&progressRequest, &flag, MPI_STATUS_IGNORE);
  } else {
    return true;
  }

  if (!reducing.tryLockLowPriority())
    return true;
  mpi::PriorityLock lock(reducing, std::adopt_lock);
  if (failure)
    return false;
  if (!reductions.empty())
    if (auto call = mpi::tryToEnter(kAllReduce))
      try {
        advanceReductions();
      } catch (...) {
        failure = std::current_exception();
      }
  return open.load() > 0;
}

/// Advances the reductions and tests `operation`. Returns whether `operation`
/// is complete. `message` is the operation if it is a message, else null.
bool MpiChannels::finished(Operation &operation, Message *message) {
  // If the lock is taken, the progress thread is advancing the reductions, so
  // this thread skips them.
  if (mpi::PriorityLock lock;
      !reductions.empty() &&
      (lock = mpi::PriorityLock(reducing, std::try_to_lock))) {
    if (failure)
      std::rethrow_exception(failure);
    auto call = mpi::enter(kAllReduce);
    advanceReductions();
    std::erase_if(reductions, [](const Reduction *reduction) {
      return reduction->done.load();
    });
  }
  if (message) {
    auto call = mpi::enter("MPI_Test");
    message->advance();
  }
  return operation.done.load();
}

void MpiChannels::abort(const std::string &text) {
  std::lock_guard lock(mutex);
  if (!isAborted.load())
    reason = text;
  isAborted.store(true);
}

void MpiChannels::throwIfAborted() {
  if (!isAborted.load())
    return;
  std::lock_guard lock(mutex);
  throw WaitError(WaitError::Reason::Aborted, "aborted: " + reason);
}

void MpiChannels::wait(Queue &, std::unique_ptr<Request> request,
                       std::chrono::milliseconds timeout) {
  auto *operation = dynamic_cast<Operation *>(request.get());
  if (!operation || &operation->channels != this)
    throw std::invalid_argument("expected a request of these channels");
  auto *message = dynamic_cast<Message *>(operation);
  throwIfAborted();
  if (finished(*operation, message))
    return;

  if (thread)
    thread->pause();
  threadHasWork = true;
  Deadline deadline(timeout);
  mpi::Backoff backoff;
  for (unsigned turn = 1;; ++turn) {
    backoff.pause();
    if (backoff.runMeasured([&] { return finished(*operation, message); })) {
      operation->close();
      return;
    }
    if (turn % 16 != 0)
      continue;
    throwIfAborted();
    if (deadline.passed())
      throw WaitError(WaitError::Reason::TimedOut,
                      timeoutMessage(timeout, operation->awaited()));
  }
}

std::unique_ptr<Channels>
chimera::runtime::makeMpiChannels(const MpiOptions &options) {
  return std::make_unique<MpiChannels>(options);
}
