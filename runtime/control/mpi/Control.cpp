//===- Control.cpp - Control among processes of an MPI job ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/control/mpi/Control.h"

#include "runtime/channel/mpi/Calls.h"
#include "runtime/channel/mpi/News.h"
#include "runtime/channel/mpi/Pace.h"
#include "runtime/channel/mpi/Turns.h"
#include "runtime/system/Deadline.h"

#include <algorithm>
#include <cstring>
#include <map>

using namespace chimera::runtime;

namespace {
/// A message under way, which MPI reads from here.
struct Sending {
  Block block;
  uint64_t bytes = 0;
  std::vector<MPI_Request> requests;
};

class MpiControl final : public Control {
public:
  explicit MpiControl(std::shared_ptr<mpi::News> known)
      : news(std::move(known)) {
    auto turn = mpi::enter();
    communicator = mpi::duplicateWorld();
    int number = 0;
    MPI_Comm_rank(communicator, &number);
    self = static_cast<uint32_t>(number);
    MPI_Comm_size(communicator, &number);
    size = static_cast<uint32_t>(number);
  }

  ~MpiControl() override {
    auto turn = mpi::enter();
    for (auto &[peer, list] : sendings)
      for (Sending &sending : list)
        mpi::abandon(sending.requests, false);
    // Freeing is collective; after an abort the others may not come.
    if (!news->aborted())
      MPI_Comm_free(&communicator);
  }

  uint32_t rank() const override { return self; }
  uint32_t ranks() const override { return size; }

  void send(uint32_t to, ConstBytes bytes,
            std::chrono::milliseconds timeout) override {
    news->throwIfAborted();
    std::vector<Sending> &list = sendings[checked(to)];
    Sending &sending = list.emplace_back();
    sending.block = makeBlock(bytes.size());
    sending.bytes = bytes.size();
    std::copy(bytes.begin(), bytes.end(), sending.block.get());
    {
      auto turn = mpi::enter();
      mpi::send({sending.block.get(), sending.bytes}, to, 0, communicator,
                sending.requests);
    }
    waitUntil([&] { return unread(list) <= kUnread; }, timeout,
              [&] { return "rank " + std::to_string(to) + " to receive"; });
  }

  void receive(uint32_t from, Bytes bytes,
               std::chrono::milliseconds timeout) override {
    news->throwIfAborted();
    // Asked for its size first, so that one of another size can be told.
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    waitUntil(
        [&] {
          int found = 0;
          mpi::check(MPI_Improbe(static_cast<int>(checked(from)), 0,
                                 communicator, &found, &message, &status),
                     "MPI_Improbe");
          return found != 0;
        },
        timeout, [&] { return "rank " + std::to_string(from) + " to send"; });
    int got = 0;
    mpi::check(MPI_Get_count(&status, MPI_BYTE, &got), "MPI_Get_count");
    // In a block, for it may be given up.
    Sending receiving;
    receiving.block = makeBlock(static_cast<uint64_t>(got));
    receiving.requests.push_back(MPI_REQUEST_NULL);
    {
      auto turn = mpi::enter();
      mpi::check(MPI_Imrecv(receiving.block.get(), got, MPI_BYTE, &message,
                            &receiving.requests.back()),
                 "MPI_Imrecv");
    }
    try {
      waitUntil([&] { return mpi::test(receiving.requests); }, timeout,
                [&] {
                  return "rank " + std::to_string(from) +
                         " to send all of a message";
                });
    } catch (...) {
      auto turn = mpi::enter();
      mpi::abandon(receiving.requests, true);
      throw;
    }
    if (static_cast<uint64_t>(got) != bytes.size())
      throw std::invalid_argument("receive from rank " + std::to_string(from) +
                                  ": expected " + std::to_string(bytes.size()) +
                                  " bytes at the other end, got " +
                                  std::to_string(got));
    std::copy_n(receiving.block.get(), bytes.size(), bytes.begin());
  }

  void abort(const std::string &reason) override { news->abort(reason); }

private:
  uint32_t checked(uint32_t peer) const {
    if (peer >= size)
      throw std::invalid_argument("expected a rank below " +
                                  std::to_string(size) + ", got " +
                                  std::to_string(peer));
    return peer;
  }

  /// The bytes of messages that are still under way. In turn.
  static uint64_t unread(std::vector<Sending> &list) {
    std::erase_if(list,
                  [](Sending &sending) { return mpi::test(sending.requests); });
    uint64_t bytes = 0;
    for (const Sending &sending : list)
      bytes += sending.bytes;
    return bytes;
  }

  template <typename Done, typename What>
  void waitUntil(Done done, std::chrono::milliseconds timeout, What what) {
    Deadline deadline(timeout);
    mpi::Pace pace;
    auto ask = [&] {
      auto turn = mpi::enter();
      return done();
    };
    for (unsigned turn = 1; !pace.during(ask); ++turn) {
      pace.pause();
      if (turn % 16 != 0)
        continue;
      news->throwIfAborted();
      if (deadline.passed())
        throw WaitError(WaitError::Reason::TimedOut, timedOut(timeout, what()));
    }
  }

  const std::shared_ptr<mpi::News> news;
  MPI_Comm communicator;
  uint32_t self = 0, size = 0;
  std::map<uint32_t, std::vector<Sending>> sendings; ///< by receiver
};
} // namespace

std::unique_ptr<Control>
chimera::runtime::makeMpiControl(std::shared_ptr<mpi::News> news) {
  return std::make_unique<MpiControl>(std::move(news));
}
