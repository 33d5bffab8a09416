//===- Channels.cpp - Channels between simulated devices ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/simulated/Channels.h"

#include "runtime/channel/StreamKey.h"
#include "runtime/device/Fold.h"

#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

using namespace chimera;
using namespace chimera::runtime;
using namespace chimera::runtime::simulated;
using program::MessageModel;

namespace {
/// An end of a message: its send or its receive.
struct End {
  SharedOperation operation;
  uint32_t rank;
  ConstBytes bytes;
};

/// The posted ends of messages from one rank to another whose other end is not
/// posted, oldest first. One of the two lists is always empty. Under the
/// buffered model, a send is stored with a copy of its bytes.
struct Pair {
  struct Send {
    End end;
    std::shared_ptr<Transfer> leaving; ///< if buffered: copies to `left`
    std::shared_ptr<std::vector<std::byte>> left;
  };
  std::deque<Send> sends;
  std::deque<End> receives;
};

/// A member's part of an all-reduce.
struct Part {
  SharedOperation operation;
  ElementType type;
  std::vector<ConstBytes> given;
  Bytes sum;
};

struct Reductions {
  std::vector<uint32_t> contributors;
  std::map<uint32_t, std::deque<Part>> parts; ///< by member; oldest first
};

/// The state that all ranks share.
struct SharedState {
  explicit SharedState(Simulation &simulation, uint32_t ranks)
      : simulation(simulation), ranks(ranks) {}

  Simulation &simulation;
  const uint32_t ranks;
  std::mutex mutex; ///< guards the rest
  MessageModel model = MessageModel::Rendezvous;
  std::map<std::pair<uint32_t, uint32_t>, Pair> pairs; ///< by sender, receiver
  std::map<uint32_t, Reductions> reductions;           ///< by group
};

struct SimulatedRequest final : Request {
  SimulatedRequest(std::shared_ptr<SharedState> shared,
                   SharedOperation operation)
      : shared(std::move(shared)), operation(std::move(operation)) {}
  ~SimulatedRequest() override {
    if (operation)
      shared->simulation.abandon(operation);
  }
  std::shared_ptr<SharedState> shared;
  SharedOperation operation;
};

class SimulatedChannels final : public Channels {
public:
  SimulatedChannels(std::shared_ptr<SharedState> shared, uint32_t self)
      : shared(std::move(shared)), self(self) {}

  uint32_t rank() const override { return self; }
  uint32_t ranks() const override { return shared->ranks; }

  void prepare(const Communication &communication) override {
    std::lock_guard lock(shared->mutex);
    shared->model = communication.model;
  }

  std::unique_ptr<Request> postSend(uint32_t to, ConstBytes bytes,
                                    Event after) override {
    std::lock_guard lock(shared->mutex);
    Pair &pair = shared->pairs[{self, checked(to)}];
    SharedOperation operation =
        post("the send", {reads(bytes)}, after, streamTo(to, true));
    Pair::Send send{{operation, self, bytes}, {}, {}};
    if (shared->model == MessageModel::Buffered) {
      send.left = std::make_shared<std::vector<std::byte>>(bytes.size());
      send.leaving = std::make_shared<Transfer>();
      send.leaving->parties = {{operation, false, true}};
      send.leaving->move = [shared = shared.get(), end = send.end,
                            left = send.left] {
        if (!end.bytes.empty())
          std::memcpy(left->data(),
                      shared->simulation.find(end.rank, end.bytes),
                      left->size());
      };
      shared->simulation.add(send.leaving);
    }
    pair.sends.push_back(std::move(send));
    match(pair);
    return request(std::move(operation));
  }

  std::unique_ptr<Request> postReceive(uint32_t from, Bytes bytes,
                                       Event after) override {
    std::lock_guard lock(shared->mutex);
    Pair &pair = shared->pairs[{checked(from), self}];
    SharedOperation operation =
        post("the receive", {writes(bytes)}, after, streamTo(from, false));
    pair.receives.push_back({operation, self, bytes});
    match(pair);
    return request(std::move(operation));
  }

  std::unique_ptr<Request> startAllReduce(const ReduceGroup &group,
                                          ElementType type,
                                          std::vector<ConstBytes> given,
                                          Bytes sum, Event after) override {
    checkAllReduce(group, self, type, given, sum);
    std::lock_guard lock(shared->mutex);
    std::vector<uint32_t> members = membersOf(group);
    std::vector<Access> accesses;
    for (ConstBytes bytes : given)
      accesses.push_back(reads(bytes));
    accesses.push_back(writes(sum));
    SharedOperation operation =
        post("the all-reduce", std::move(accesses), after, streamOf(members));
    Reductions &reductions = shared->reductions[group.id];
    if (reductions.contributors.empty()) {
      reductions.contributors = group.contributors;
      for (uint32_t member : members)
        reductions.parts[member];
    }
    if (reductions.contributors != group.contributors)
      throw std::invalid_argument(
          "group " + std::to_string(group.id) +
          ": expected the same members as in its earlier all-reduces");
    reductions.parts.at(self).push_back(
        {operation, type, std::move(given), sum});
    join(reductions);
    return request(std::move(operation));
  }

  void beginGroup() override {
    inGroup = true;
    group.reset();
  }
  void endGroup() override {
    inGroup = false;
    if (group)
      shared->simulation.close(group);
    group.reset();
  }

  void wait(Queue &queue, std::unique_ptr<Request> request,
            std::chrono::milliseconds) override {
    auto &own = dynamic_cast<SimulatedRequest &>(*request);
    shared->simulation.putWait(queue, std::exchange(own.operation, nullptr));
  }

  void abort(const std::string &reason) override {
    shared->simulation.abort(reason);
  }

private:
  uint32_t checked(uint32_t peer) const {
    if (peer >= shared->ranks)
      throw std::invalid_argument("expected a rank below " +
                                  std::to_string(shared->ranks) + ", got " +
                                  std::to_string(peer));
    return peer;
  }

  /// The stream of a message. None if the model has no streams.
  std::optional<StreamKey> streamTo(uint32_t peer, bool isSend) const {
    if (!program::hasStreams(shared->model))
      return std::nullopt;
    return isSend ? streamKey(shared->model, self, peer)
                  : streamKey(shared->model, peer, self);
  }
  std::optional<StreamKey>
  streamOf(const std::vector<uint32_t> &members) const {
    if (!program::hasStreams(shared->model))
      return std::nullopt;
    return streamKey(shared->model, members);
  }

  SharedOperation post(const char *what, std::vector<Access> accesses,
                       Event after, const std::optional<StreamKey> &stream) {
    // In each stream, the operations of a group are one operation.
    if (stream && inGroup && !group)
      group = shared->simulation.makeBatch();
    SharedBatch batch =
        stream && inGroup ? group : shared->simulation.makeBatch();
    if (stream) {
      shared->simulation.follow(batch, last[*stream]);
      last[*stream] = batch;
    }
    SharedOperation operation =
        shared->simulation.post(self, what, std::move(accesses), after, batch);
    if (batch != group)
      shared->simulation.close(batch);
    return operation;
  }

  std::unique_ptr<Request> request(SharedOperation operation) {
    return std::make_unique<SimulatedRequest>(shared, std::move(operation));
  }

  void match(Pair &pair) {
    while (!pair.sends.empty() && !pair.receives.empty()) {
      Pair::Send send = std::move(pair.sends.front());
      End receive = std::move(pair.receives.front());
      pair.sends.pop_front();
      pair.receives.pop_front();
      if (send.end.bytes.size() != receive.bytes.size()) {
        std::string fault = "message from rank " +
                            std::to_string(send.end.rank) + " to rank " +
                            std::to_string(receive.rank) + ": expected " +
                            std::to_string(receive.bytes.size()) +
                            " bytes at the other end, got " +
                            std::to_string(send.end.bytes.size());
        shared->simulation.abort(fault);
        throw std::invalid_argument(fault);
      }
      auto transfer = std::make_shared<Transfer>();
      transfer->parties = {{send.end.operation, false, !send.leaving},
                           {receive.operation, true, true}};
      transfer->after = send.leaving;
      transfer->move = [shared = shared.get(), from = send.end,
                        left = send.left, to = receive] {
        if (to.bytes.empty())
          return;
        std::memcpy(shared->simulation.find(to.rank, to.bytes),
                    left ? left->data()
                         : shared->simulation.find(from.rank, from.bytes),
                    to.bytes.size());
      };
      shared->simulation.add(std::move(transfer));
    }
  }

  void join(Reductions &reductions) {
    for (auto &[member, parts] : reductions.parts)
      if (parts.empty())
        return;
    std::map<uint32_t, Part> joined;
    for (auto &[member, parts] : reductions.parts) {
      joined[member] = std::move(parts.front());
      parts.pop_front();
    }
    auto transfer = std::make_shared<Transfer>();
    const Part &first = joined.begin()->second;
    for (auto &[member, part] : joined) {
      if (part.type != first.type || part.sum.size() != first.sum.size())
        throw std::invalid_argument("all-reduce of rank " +
                                    std::to_string(member) +
                                    ": expected the type and size that other "
                                    "members have");
      transfer->parties.push_back({part.operation, true, true});
    }
    transfer->move = [shared = shared.get(),
                      contributors = reductions.contributors, joined] {
      std::map<uint32_t, size_t> next;
      std::vector<const std::byte *> summands;
      for (uint32_t rank : contributors)
        summands.push_back(
            shared->simulation.find(rank, joined.at(rank).given[next[rank]++]));
      const Part &any = joined.begin()->second;
      std::vector<std::byte> sum(any.sum.size());
      fold(any.type, summands, sum.data(), sum.size());
      for (const auto &[member, part] : joined)
        if (!sum.empty())
          std::memcpy(shared->simulation.find(member, part.sum), sum.data(),
                      sum.size());
    };
    shared->simulation.add(std::move(transfer));
  }

  const std::shared_ptr<SharedState> shared;
  const uint32_t self;
  std::map<StreamKey, SharedBatch> last; ///< by stream
  bool inGroup = false;
  SharedBatch group; ///< the open group, once it has an operation
};
} // namespace

std::vector<std::unique_ptr<Channels>>
chimera::runtime::makeSimulatedChannels(Simulation &simulation,
                                        uint32_t ranks) {
  auto shared = std::make_shared<SharedState>(simulation, ranks);
  std::vector<std::unique_ptr<Channels>> channels;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    channels.push_back(std::make_unique<SimulatedChannels>(shared, rank));
  return channels;
}
