//===- Mpi.cpp - Ranks as processes of an MPI job -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MPI moves nothing unless someone is inside it, and its blocking calls spin.
// So waits test, yield and nap, and each of them drives all outstanding
// all-reduces of the rank; while the rank is in none, its progress thread, if
// it has one, drives all that is in flight.
//
//===----------------------------------------------------------------------===//

#include "runtime/transport/Deadline.h"
#include "runtime/transport/Fold.h"
#include "runtime/transport/mpi/AllReduce.h"
#include "runtime/transport/mpi/Pace.h"
#include "runtime/transport/mpi/ProgressThread.h"
#include "runtime/transport/mpi/Session.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <optional>

using namespace chimera::runtime;

namespace {
class Mpi;

/// Guarded, with all that derives from it, by the lock of `enter`.
struct Operation : Request {
  explicit Operation(Mpi &transport) : transport(transport) {}

  /// For what the rank waits.
  virtual std::string awaited() const = 0;

  Mpi &transport;
  bool done = false;
};

struct Message final : Operation {
  Message(Mpi &transport, uint64_t size, bool isSend, uint32_t peer)
      : Operation(transport), size(size), isSend(isSend), peer(peer) {}
  ~Message() override;

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

  std::optional<mpi::AllReduce> sum;
};

class Mpi final : public Transport {
public:
  explicit Mpi(const MpiOptions &options);
  ~Mpi() override;

  uint32_t rank() const override { return self; }
  uint32_t ranks() const override { return size; }

  std::unique_ptr<Request> postSend(uint32_t to, ConstBytes bytes) override {
    auto message =
        std::make_unique<Message>(*this, bytes.size(), true, checked(to));
    auto lock = mpi::enter();
    mpi::send(bytes, to, 0, channels, message->requests);
    began(messages, message.get());
    return message;
  }
  std::unique_ptr<Request> postReceive(uint32_t from, Bytes bytes) override {
    auto message =
        std::make_unique<Message>(*this, bytes.size(), false, checked(from));
    auto lock = mpi::enter();
    mpi::receive(bytes, from, 0, channels, message->requests);
    began(messages, message.get());
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
    auto reduction = std::make_unique<Reduction>(*this);
    auto lock = mpi::enter();
    reduction->sum.emplace(group, self, type, std::move(given), sum, scatter,
                           gather);
    began(reductions, reduction.get());
    return reduction;
  }

  void wait(std::unique_ptr<Request> request,
            std::chrono::milliseconds timeout) override;

  void abort(const std::string &text) override;

  /// Takes an operation that ends early off the lists. With the lock.
  void forget(const Message *message) { std::erase(messages, message); }
  void forget(const Reduction *reduction) { std::erase(reductions, reduction); }

private:
  uint32_t checked(uint32_t peer) const {
    if (peer >= size)
      throw std::invalid_argument("expected a rank below " +
                                  std::to_string(size) + ", got " +
                                  std::to_string(peer));
    return peer;
  }
  template <typename Kind> void began(std::vector<Kind *> &kind, Kind *which) {
    kind.push_back(which);
    if (thread)
      thread->posted();
  }

  // All with the lock.
  void advanceReductions();
  void drive();
  bool finished(Operation &operation);
  void throwIfAborted();
  void tellOthers();

  uint32_t self = 0;
  uint32_t size = 0;
  uint32_t largestTag = 0;
  // Separate communicators keep messages, the two exchanges of all-reduces and
  // the news of an abort apart.
  MPI_Comm channels, scatter, gather, news;
  // Not known to be done, the oldest first.
  std::vector<Message *> messages;
  std::vector<Reduction *> reductions;
  std::exception_ptr failure; ///< of the progress thread

  const std::thread::id owner = std::this_thread::get_id();
  std::mutex mutex;
  std::string reason; // guarded by mutex
  std::atomic<bool> aborted{false};
  bool told = false;
  std::array<char, 512> heard{};
  MPI_Request hearing = MPI_REQUEST_NULL;
  std::string telling;
  std::vector<MPI_Request> tellings;

  std::optional<mpi::ProgressThread> thread;
};
} // namespace

Message::~Message() {
  auto lock = mpi::enter();
  if (!done)
    transport.forget(this);
  mpi::abandon(requests, !isSend);
}

/// A receive must get as many bytes as it expects, not fewer.
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

Reduction::~Reduction() {
  auto lock = mpi::enter();
  if (!done)
    transport.forget(this);
  sum.reset();
}

Mpi::Mpi(const MpiOptions &options) {
  auto lock = mpi::enter();
  int number = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &number);
  self = static_cast<uint32_t>(number);
  MPI_Comm_size(MPI_COMM_WORLD, &number);
  size = static_cast<uint32_t>(number);
  for (MPI_Comm *communicator : {&channels, &scatter, &gather, &news}) {
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
  if (options.progressThread)
    thread.emplace([this] { drive(); },
                   [this] {
                     return !failure &&
                            !(messages.empty() && reductions.empty());
                   });
}

Mpi::~Mpi() {
  thread.reset();
  auto lock = mpi::enter();
  std::vector<MPI_Request> last{hearing};
  mpi::abandon(last, true);
  mpi::abandon(tellings, false);
  // Freeing is collective; after an abort the others may not come.
  if (!aborted)
    for (MPI_Comm *communicator : {&channels, &scatter, &gather, &news})
      MPI_Comm_free(communicator);
}

void Mpi::advanceReductions() {
  if (reductions.empty())
    return;
  // Of each group only the oldest that has not got to its second exchange may
  // go on to it.
  std::vector<uint32_t> blocked;
  for (Reduction *reduction : reductions) {
    mpi::AllReduce &sum = *reduction->sum;
    bool inTurn =
        std::find(blocked.begin(), blocked.end(), sum.group()) == blocked.end();
    sum.advance(inTurn);
    reduction->done = sum.done();
    if (!sum.gathering())
      blocked.push_back(sum.group());
  }
  std::erase_if(reductions,
                [](const Reduction *reduction) { return reduction->done; });
}

/// What the progress thread does in a turn. Any test makes MPI go round once,
/// for all requests: that of the oldest message will do.
void Mpi::drive() {
  try {
    advanceReductions();
    while (!messages.empty() && !mpi::rankWantsIn()) {
      messages.front()->advance();
      if (!messages.front()->done)
        break;
      messages.erase(messages.begin());
    }
  } catch (...) {
    failure = std::current_exception();
  }
}

bool Mpi::finished(Operation &operation) {
  advanceReductions();
  if (failure)
    std::rethrow_exception(failure);
  auto *message = dynamic_cast<Message *>(&operation);
  if (!operation.done && message) {
    message->advance();
    if (message->done)
      forget(message);
  }
  return operation.done;
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
  if (std::this_thread::get_id() != owner)
    return;
  auto lock = mpi::enter();
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
  mpi::Pace pace;
  for (int turn = 0; turn < 100 && !mpi::test(tellings); ++turn)
    pace.pause();
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
  auto *operation = dynamic_cast<Operation *>(request.get());
  if (!operation || &operation->transport != this)
    throw std::invalid_argument("expected a request of this transport");
  auto lock = mpi::enter();
  throwIfAborted();
  if (finished(*operation))
    return;

  struct InMpi {
    std::optional<mpi::ProgressThread> &thread;
    explicit InMpi(std::optional<mpi::ProgressThread> &thread)
        : thread(thread) {
      if (thread)
        thread->pause();
    }
    ~InMpi() {
      if (thread)
        thread->resume();
    }
  } inMpi(thread);
  Deadline deadline(timeout);
  mpi::Pace pace;
  for (unsigned turn = 1;; ++turn) {
    lock.unlock();
    pace.pause();
    lock = mpi::enter();
    if (pace.during([&] { return finished(*operation); }))
      return;
    if (turn % 16 != 0)
      continue;
    throwIfAborted();
    if (deadline.passed())
      throw TransportError(TransportError::Reason::TimedOut,
                           timedOut(timeout, operation->awaited()));
  }
}

std::unique_ptr<Transport>
MpiSession::makeTransport(const MpiOptions &options) const {
  if (options.progressThread && !threadsMayTakeTurns())
    throw std::runtime_error(
        "expected an MPI that threads may call in turn "
        "(MPI_THREAD_SERIALIZED) for a progress thread: run without one");
  return std::make_unique<Mpi>(options);
}
