//===- Channels.cpp - Channels over TCP -----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/tcp/Channels.h"

#include "runtime/channel/tcp/Streams.h"
#include "runtime/device/Fold.h"

#include <algorithm>
#include <stdexcept>

using namespace chimera::runtime;
using namespace chimera::runtime::tcp;

namespace {
struct Message final : Request {
  Message(Mesh &mesh, SharedOperation operation)
      : mesh(mesh), operation(std::move(operation)) {}
  ~Message() override { mesh.abandon(operation); }

  Mesh &mesh;
  const SharedOperation operation;
};

/// An all-reduce of this rank. Each member owns a chunk of the elements: it
/// gets that chunk of every contribution, folds them in the declared order and
/// sends the sum to all.
class Reduction : public std::enable_shared_from_this<Reduction> {
public:
  Reduction(Mesh &mesh, const ReduceGroup &group, uint64_t number,
            ElementType type, std::vector<ConstBytes> given, Bytes sum)
      : mesh(mesh), type(type), givers(group.contributions),
        members(membersOf(group)), given(std::move(given)), sum(sum),
        scatter(Streams::scatter(group.id, number)),
        gather(Streams::gather(group.id, number)) {
    place = static_cast<size_t>(std::ranges::lower_bound(members, mesh.rank()) -
                                members.begin());
  }

  /// Throws what posting throws, and then uses no memory any more.
  void start() try {
    Chunk own = chunkOf(place);
    // Before the sends, so that most of it goes where it belongs at once.
    size_t expected = 1;
    for (uint32_t giver : givers)
      expected += giver != mesh.rank();
    missing.store(expected);
    for (uint32_t giver : givers) {
      if (giver == mesh.rank())
        continue;
      others.emplace_back(own.size());
      keep(mesh.receive(giver, scatter, others.back(),
                        [self = shared_from_this()] { self->arrived(); }));
    }
    for (size_t member = 0; member < members.size(); ++member) {
      if (member == place)
        continue;
      Chunk chunk = chunkOf(member);
      for (ConstBytes contribution : given)
        keep(mesh.send(members[member], scatter,
                       contribution.subspan(chunk.begin, chunk.size())));
    }
    arrived(); // the own ones
  } catch (...) {
    abandon();
    throw;
  }

  bool isDone() const { return done.load(std::memory_order_acquire); }

  /// For a rank that no longer waits: its memory is not used any more.
  void abandon() {
    std::lock_guard noFold(folding);
    std::vector<SharedOperation> all;
    {
      std::lock_guard lock(mutex);
      isAbandoned = true;
      all = std::move(operations);
    }
    for (const SharedOperation &operation : all)
      mesh.abandon(operation);
  }

private:
  struct Chunk {
    uint64_t begin, end;
    uint64_t size() const { return end - begin; }
  };

  /// Equal numbers of words, but for the last chunk.
  Chunk chunkOf(size_t member) const {
    constexpr uint64_t kWord = 8;
    uint64_t words = (sum.size() + kWord - 1) / kWord;
    uint64_t each = (words + members.size() - 1) / members.size() * kWord;
    uint64_t begin = std::min<uint64_t>(member * each, sum.size());
    return {begin, std::min<uint64_t>(begin + each, sum.size())};
  }

  void keep(SharedOperation posted) {
    std::lock_guard lock(mutex);
    operations.push_back(std::move(posted));
    if (isAbandoned)
      mesh.abandon(operations.back());
  }

  void arrived() {
    if (missing.fetch_sub(1) == 1)
      foldOwn();
  }

  /// All contributions to the own chunk are here.
  void foldOwn() {
    std::lock_guard lock(folding);
    Chunk own = chunkOf(place);
    {
      std::lock_guard state(mutex);
      if (isAbandoned)
        return;
    }
    std::vector<const std::byte *> summands;
    size_t nextGiven = 0, nextOther = 0;
    for (uint32_t giver : givers)
      summands.push_back(giver == mesh.rank()
                             ? given[nextGiven++].data() + own.begin
                             : others[nextOther++].data());
    fold(type, summands, sum.data() + own.begin, own.size());
    gathering.store(members.size());
    for (size_t member = 0; member < members.size(); ++member) {
      if (member == place)
        continue;
      Chunk chunk = chunkOf(member);
      keep(mesh.receive(members[member], gather,
                        sum.subspan(chunk.begin, chunk.size()),
                        [self = shared_from_this()] { self->gathered(); }));
      sending.fetch_add(1);
      keep(mesh.send(members[member], gather,
                     sum.subspan(own.begin, own.size()),
                     [self = shared_from_this()] {
                       self->sending.fetch_sub(1);
                       self->finishIfAll();
                     }));
    }
    gathered(); // the own one
  }

  void gathered() {
    gathering.fetch_sub(1);
    finishIfAll();
  }
  void finishIfAll() {
    if (gathering.load() == 0 && sending.load() == 0)
      done.store(true, std::memory_order_release);
  }

  Mesh &mesh;
  const ElementType type;
  const std::vector<uint32_t> givers;
  const std::vector<uint32_t> members;
  const std::vector<ConstBytes> given;
  const Bytes sum;
  const Mesh::Stream scatter, gather;
  size_t place = 0;                          ///< of this rank among the members
  std::deque<std::vector<std::byte>> others; ///< contributions, own chunk
  std::atomic<size_t> missing{0}, gathering{SIZE_MAX}, sending{0};
  std::atomic<bool> done{false};
  std::mutex folding; ///< held while the rank's memory is read and written here
  std::mutex mutex;
  std::vector<SharedOperation> operations; // guarded by mutex
  bool isAbandoned = false;                // likewise
};

struct Summing final : Request {
  explicit Summing(std::shared_ptr<Reduction> reduction, uint32_t group)
      : reduction(std::move(reduction)), group(group) {}
  ~Summing() override {
    if (!reduction->isDone())
      reduction->abandon();
  }

  const std::shared_ptr<Reduction> reduction;
  const uint32_t group;
};

class TcpChannels final : public Channels {
public:
  explicit TcpChannels(Mesh &mesh) : mesh(mesh) {}

  uint32_t rank() const override { return mesh.rank(); }
  uint32_t ranks() const override { return mesh.ranks(); }

  std::unique_ptr<Request> postSend(uint32_t to, ConstBytes bytes,
                                    Event) override {
    return std::make_unique<Message>(mesh,
                                     mesh.send(to, Streams::kMessages, bytes));
  }
  std::unique_ptr<Request> postReceive(uint32_t from, Bytes bytes,
                                       Event) override {
    return std::make_unique<Message>(
        mesh, mesh.receive(from, Streams::kMessages, bytes));
  }

  std::unique_ptr<Request> startAllReduce(const ReduceGroup &group,
                                          ElementType type,
                                          std::vector<ConstBytes> given,
                                          Bytes sum, Event) override {
    checkAllReduce(group, rank(), type, given, sum);
    if (std::ranges::max(group.contributions) >= ranks())
      throw std::invalid_argument("expected ranks of this run in group " +
                                  std::to_string(group.id));
    auto reduction = std::make_shared<Reduction>(
        mesh, group, started[group.id]++, type, std::move(given), sum);
    auto request = std::make_unique<Summing>(reduction, group.id);
    reduction->start();
    return request;
  }

  void wait(Queue &, std::unique_ptr<Request> request,
            std::chrono::milliseconds timeout) override {
    if (auto *message = dynamic_cast<Message *>(request.get()))
      return mesh.wait(message->operation, timeout);
    auto &summing = dynamic_cast<Summing &>(*request);
    mesh.waitUntil([&] { return summing.reduction->isDone(); }, timeout,
                   [&] {
                     return "the all-reduce of group " +
                            std::to_string(summing.group);
                   });
  }

  void abort(const std::string &reason) override { mesh.abort(reason); }

private:
  Mesh &mesh;
  std::map<uint32_t, uint64_t> started; ///< by group
};
} // namespace

std::unique_ptr<Channels> chimera::runtime::makeTcpChannels(Mesh &mesh) {
  return std::make_unique<TcpChannels>(mesh);
}
