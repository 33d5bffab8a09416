//===- World.cpp - Channels that keep every promise, barely -------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/hostile/World.h"

#include "runtime/device/Fold.h"

#include <algorithm>

using namespace chimera::runtime;
using namespace chimera::runtime::hostile;

struct World::Operation {
  uint32_t rank;
  uint32_t instruction;
  Time posted;
  std::string what;
  std::vector<ConstBytes> given; // what is sent or summed
  std::vector<Memory> held;      // what that was at the post
  Bytes taken;                   // what is filled at the wait
  std::byte garbage{};           // what fills it until then
  Memory result;                 // what will
  Bytes away;                    // what is handed over
  ElementType type{};            // of an all-reduce
  std::optional<Time> complete;
};

struct World::OperationRequest final : Request {
  explicit OperationRequest(Shared operation)
      : operation(std::move(operation)) {}
  Shared operation;
};

class World::Endpoint final : public Channels {
public:
  Endpoint(World &world, uint32_t self) : world(world), self(self) {}

  uint32_t rank() const override { return self; }
  uint32_t ranks() const override { return world.options.ranks; }

  std::unique_ptr<Request> postSend(uint32_t to, ConstBytes bytes,
                                    Event) override {
    Shared operation = make("the send to rank " + std::to_string(to));
    give(*operation, {bytes});
    Channel &channel = world.channels[{self, to}];
    channel.sends.push_back(operation);
    if (world.options.buffered)
      operation->complete = world.now + world.delay();
    auto request = world.post(operation);
    world.matchChannel(channel);
    return request;
  }

  std::unique_ptr<Request> handOver(uint32_t to, Block &memory, uint64_t size,
                                    Event) override {
    Bytes bytes(memory.get(), size);
    auto request = postSend(to, bytes, {});
    dynamic_cast<OperationRequest &>(*request).operation->away = bytes;
    return request;
  }

  std::unique_ptr<Request> postReceive(uint32_t from, Bytes bytes,
                                       Event) override {
    Shared operation = make("the receive from rank " + std::to_string(from));
    operation->taken = bytes;
    world.poison(*operation);
    Channel &channel = world.channels[{from, self}];
    channel.receives.push_back(operation);
    auto request = world.post(operation);
    world.matchChannel(channel);
    return request;
  }

  std::unique_ptr<Request> startAllReduce(const ReduceGroup &group,
                                          ElementType type,
                                          std::vector<ConstBytes> contributions,
                                          Bytes sum, Event) override {
    checkAllReduce(group, self, type, contributions, sum);
    Shared operation =
        make("the all-reduce of group " + std::to_string(group.id));
    operation->type = type;
    operation->taken = sum;
    // The sum may be one of them.
    give(*operation, std::move(contributions));
    world.poison(*operation);
    Reduction &reduction = world.reductions[group.id];
    if (reduction.contributions.empty()) {
      reduction.contributions = group.contributions;
      for (uint32_t member : membersOf(group))
        reduction.starts[member];
    }
    reduction.starts.at(self).push_back(operation);
    auto request = world.post(operation);
    world.join(reduction);
    return request;
  }

  void wait(Queue &, std::unique_ptr<Request> request,
            std::chrono::milliseconds) override {
    if (!request)
      throw std::logic_error("waits for what was not posted");
    world.finish(*dynamic_cast<OperationRequest &>(*request).operation);
  }

  void abort(const std::string &) override {}

private:
  Shared make(std::string what) {
    auto operation = std::make_shared<Operation>();
    operation->rank = self;
    operation->instruction = world.instructions[self];
    operation->posted = world.now;
    operation->what = std::move(what);
    return operation;
  }
  static void give(Operation &operation, std::vector<ConstBytes> given) {
    for (ConstBytes bytes : given)
      operation.held.emplace_back(bytes.begin(), bytes.end());
    operation.given = std::move(given);
  }

  World &world;
  uint32_t self;
};

World::World(const Options &options, Random &random)
    : options(options), random(random), instructions(options.ranks),
      posted(options.ranks) {
  for (uint32_t rank = 0; rank < options.ranks; ++rank)
    endpoints.push_back(std::make_unique<Endpoint>(*this, rank));
}

World::~World() = default;

Channels &World::of(uint32_t rank) { return *endpoints[rank]; }

void World::enter(uint32_t rank, uint32_t index, Time time) {
  instructions[rank] = index;
  now = time;
}

std::optional<Time> World::completion(uint32_t rank, uint32_t index) const {
  auto found = posted[rank].find(index);
  return found == posted[rank].end() ? std::nullopt : found->second->complete;
}

std::unique_ptr<Request> World::post(Shared operation) {
  posted[operation->rank][operation->instruction] = operation;
  return std::make_unique<OperationRequest>(std::move(operation));
}

void World::poison(Operation &operation) {
  operation.garbage = static_cast<std::byte>(random.next());
  std::ranges::fill(operation.taken, operation.garbage);
}

void World::matchChannel(Channel &channel) {
  while (!channel.sends.empty() && !channel.receives.empty()) {
    Shared send = channel.sends.front(), receive = channel.receives.front();
    channel.sends.pop_front();
    channel.receives.pop_front();
    if (send->held[0].size() != receive->taken.size())
      throw std::logic_error("expected a message of " +
                             std::to_string(receive->taken.size()) +
                             " bytes from rank " + std::to_string(send->rank) +
                             " to rank " + std::to_string(receive->rank) +
                             ", got " + std::to_string(send->held[0].size()));
    receive->result = send->held[0];
    receive->complete = options.buffered ? std::max(now, send->posted + delay())
                                         : now + delay();
    if (!options.buffered)
      send->complete = now + delay();
  }
}

void World::join(Reduction &reduction) {
  for (auto &[member, starts] : reduction.starts)
    if (starts.empty())
      return;
  std::map<uint32_t, Shared> joined;
  for (auto &[member, starts] : reduction.starts) {
    joined[member] = starts.front();
    starts.pop_front();
  }
  const Operation &first = *joined.begin()->second;
  std::map<uint32_t, size_t> next;
  std::vector<const std::byte *> summands;
  for (uint32_t rank : reduction.contributions) {
    const Operation &start = *joined.at(rank);
    if (start.type != first.type || start.taken.size() != first.taken.size())
      throw std::logic_error("expected equal types and sizes of " + start.what);
    summands.push_back(start.held[next[rank]++].data());
  }
  Memory sum(first.taken.size());
  fold(first.type, summands, sum.data(), sum.size());
  for (auto &[member, start] : joined) {
    start->result = sum;
    start->complete = now + delay();
  }
}

void World::finish(Operation &operation) {
  if (!operation.complete || *operation.complete > now)
    throw std::logic_error("waited for " + operation.what +
                           " before it was complete");
  for (size_t k = 0; k < operation.given.size(); ++k)
    if (operation.given[k].data() != operation.taken.data() &&
        !std::ranges::equal(operation.given[k], operation.held[k]))
      throw std::logic_error("wrote what " + operation.what +
                             " still read, posted by instruction " +
                             std::to_string(operation.instruction));
  if (!std::ranges::all_of(operation.taken, [&](std::byte byte) {
        return byte == operation.garbage;
      }))
    throw std::logic_error("wrote into " + operation.what +
                           ", posted by instruction " +
                           std::to_string(operation.instruction));
  std::ranges::copy(operation.result, operation.taken.begin());
  std::ranges::fill(operation.away, static_cast<std::byte>(random.next()));
  posted[operation.rank].erase(operation.instruction);
}
