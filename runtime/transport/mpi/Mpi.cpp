//===- Mpi.cpp - Ranks as processes of an MPI job -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Only the rank's own thread calls MPI. MPI moves nothing unless someone is
// inside it, and its blocking calls spin, so waits test, yield and nap, and
// each of them drives all outstanding all-reduces of the rank.
//
//===----------------------------------------------------------------------===//

#include "runtime/transport/Deadline.h"
#include "runtime/transport/Fold.h"
#include "runtime/transport/mpi/AllReduce.h"
#include "runtime/transport/mpi/Calls.h"
#include "runtime/transport/mpi/Session.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>

using namespace chimera::runtime;

namespace {
struct Message final : Request {
  std::vector<MPI_Request> requests;
  uint64_t size;
  bool isSend;
  uint32_t peer;

  Message(uint64_t size, bool isSend, uint32_t peer)
      : size(size), isSend(isSend), peer(peer) {}
  ~Message() override { mpi::abandon(requests, !isSend); }

  /// A receive must get as many bytes as it expects, not fewer.
  bool complete() {
    while (!requests.empty()) {
      int flag = 0;
      MPI_Status status;
      mpi::check(MPI_Test(&requests.front(), &flag, &status), "MPI_Test");
      if (!flag)
        return false;
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
    return true;
  }

private:
  uint64_t received = 0;
};

struct AllReduceRequest final : Request {
  std::shared_ptr<mpi::AllReduce> operation;
};

class Mpi final : public Transport {
public:
  Mpi();
  ~Mpi() override;

  uint32_t rank() const override { return self; }
  uint32_t ranks() const override { return size; }

  std::unique_ptr<Request> postSend(uint32_t to, ConstBytes bytes) override {
    auto message = std::make_unique<Message>(bytes.size(), true, checked(to));
    mpi::send(bytes, to, 0, messages, message->requests);
    return message;
  }
  std::unique_ptr<Request> postReceive(uint32_t from, Bytes bytes) override {
    auto message =
        std::make_unique<Message>(bytes.size(), false, checked(from));
    mpi::receive(bytes, from, 0, messages, message->requests);
    return message;
  }

  std::unique_ptr<Request> startAllReduce(const ReduceGroup &group,
                                          ElementType type,
                                          std::vector<ConstBytes> given,
                                          Bytes sum) override {
    checkAllReduce(group, self, type, given, sum);
    if (group.id > largestTag || std::ranges::max(group.contributions) >= size)
      throw std::invalid_argument("expected a group number up to " +
                                  std::to_string(largestTag) +
                                  " and ranks of this run");
    auto request = std::make_unique<AllReduceRequest>();
    request->operation = std::make_shared<mpi::AllReduce>(
        group, self, type, std::move(given), sum, scatter, gather);
    outstanding.push_back(request->operation);
    return request;
  }

  void wait(std::unique_ptr<Request> request,
            std::chrono::milliseconds timeout) override;

  void abort(const std::string &text) override;

private:
  uint32_t checked(uint32_t peer) const {
    if (peer >= size)
      throw std::invalid_argument("expected a rank below " +
                                  std::to_string(size) + ", got " +
                                  std::to_string(peer));
    return peer;
  }
  void progress();
  void throwIfAborted();
  void tellOthers();

  uint32_t self = 0;
  uint32_t size = 0;
  uint32_t largestTag = 0;
  // Separate communicators keep messages, the two exchanges of all-reduces and
  // the news of an abort apart.
  MPI_Comm messages, scatter, gather, news;
  // Started and not known to be done, in that order. A request that is
  // destroyed early takes its operation with it.
  std::vector<std::weak_ptr<mpi::AllReduce>> outstanding;

  const std::thread::id owner = std::this_thread::get_id();
  std::mutex mutex;
  std::string reason; // guarded by mutex
  std::atomic<bool> aborted{false};
  bool told = false;
  std::array<char, 512> heard{};
  MPI_Request hearing = MPI_REQUEST_NULL;
  std::string telling;
  std::vector<MPI_Request> tellings;
};
} // namespace

Mpi::Mpi() {
  int number = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &number);
  self = static_cast<uint32_t>(number);
  MPI_Comm_size(MPI_COMM_WORLD, &number);
  size = static_cast<uint32_t>(number);
  for (MPI_Comm *communicator : {&messages, &scatter, &gather, &news}) {
    mpi::check(MPI_Comm_dup(MPI_COMM_WORLD, communicator), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(*communicator, MPI_ERRORS_RETURN);
  }
  void *value = nullptr;
  int found = 0;
  MPI_Comm_get_attr(scatter, MPI_TAG_UB, &value, &found);
  largestTag =
      found ? static_cast<uint32_t>(*static_cast<int *>(value)) : 32767;
  mpi::check(MPI_Irecv(heard.data(), heard.size() - 1, MPI_BYTE, MPI_ANY_SOURCE,
                       0, news, &hearing),
             "MPI_Irecv");
}

Mpi::~Mpi() {
  std::vector<MPI_Request> last{hearing};
  mpi::abandon(last, true);
  mpi::abandon(tellings, false);
  // Freeing is collective; after an abort the others may not come.
  if (!aborted)
    for (MPI_Comm *communicator : {&messages, &scatter, &gather, &news})
      MPI_Comm_free(communicator);
}

void Mpi::progress() {
  if (outstanding.empty())
    return;
  // Of each group only the oldest that still scatters may go on.
  std::vector<uint32_t> blocked;
  bool anyDone = false;
  for (const std::weak_ptr<mpi::AllReduce> &weak : outstanding) {
    std::shared_ptr<mpi::AllReduce> operation = weak.lock();
    if (!operation || operation->done()) {
      anyDone = true;
      continue;
    }
    bool inTurn = std::find(blocked.begin(), blocked.end(),
                            operation->group()) == blocked.end();
    operation->advance(inTurn);
    if (operation->scattering())
      blocked.push_back(operation->group());
  }
  if (anyDone)
    std::erase_if(outstanding, [](const std::weak_ptr<mpi::AllReduce> &weak) {
      std::shared_ptr<mpi::AllReduce> operation = weak.lock();
      return !operation || operation->done();
    });
}

void Mpi::abort(const std::string &text) {
  {
    std::lock_guard lock(mutex);
    if (!aborted.load()) {
      reason = text;
      aborted.store(true);
    }
  }
  // Another thread leaves it to the owner's next wait.
  if (std::this_thread::get_id() == owner)
    tellOthers();
}

void Mpi::tellOthers() {
  if (std::exchange(told, true))
    return;
  {
    std::lock_guard lock(mutex);
    telling = reason.substr(0, heard.size() - 1);
  }
  for (uint32_t peer = 0; peer < size; ++peer)
    if (peer != self)
      mpi::send(std::as_bytes(std::span(telling)), peer, 0, news, tellings);
  for (int turn = 0; turn < 100 && !mpi::test(tellings); ++turn)
    mpi::pause(turn);
}

void Mpi::throwIfAborted() {
  if (!aborted.load()) {
    int flag = 0;
    MPI_Status status;
    mpi::check(MPI_Test(&hearing, &flag, &status), "MPI_Test");
    if (!flag)
      return;
    std::lock_guard lock(mutex);
    if (!aborted.load())
      reason = heard.data();
    told = true; // whoever told this rank has told the others
    aborted.store(true);
  }
  tellOthers();
  std::lock_guard lock(mutex);
  throw TransportError(TransportError::Reason::Aborted, "aborted: " + reason);
}

void Mpi::wait(std::unique_ptr<Request> request,
               std::chrono::milliseconds timeout) {
  auto *message = dynamic_cast<Message *>(request.get());
  auto *reduction = dynamic_cast<AllReduceRequest *>(request.get());
  if (!message && !reduction)
    throw std::invalid_argument("expected a request of this transport");
  auto complete = [&] {
    progress();
    return message ? message->complete() : reduction->operation->done();
  };
  throwIfAborted();
  if (complete())
    return;
  Deadline deadline(timeout);
  for (unsigned turn = 1; !complete(); ++turn) {
    mpi::pause(turn);
    if (turn % 16 != 0)
      continue;
    throwIfAborted();
    if (!deadline.passed())
      continue;
    std::string what = reduction
                           ? "the all-reduce of group " +
                                 std::to_string(reduction->operation->group())
                           : "rank " + std::to_string(message->peer) + " to " +
                                 (message->isSend ? "receive" : "send");
    throw TransportError(TransportError::Reason::TimedOut,
                         timedOut(timeout, what));
  }
}

std::unique_ptr<Transport> MpiSession::makeTransport() const {
  return std::make_unique<Mpi>();
}
