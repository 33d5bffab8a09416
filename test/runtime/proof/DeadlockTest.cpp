//===- DeadlockTest.cpp - Compares found deadlocks with a graph -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The verifier finds deadlocks by simulating the instruction streams. This test
// builds the event graph that Verify.h defines, and searches it for a cycle.
// Both must agree. In the programs of the test, posts, waits and starts have
// been moved and grouped at random.
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/Verify.h"
#include "test/runtime/program/SamplePrograms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <map>
#include <random>
#include <set>

namespace chimera::program {
namespace {

bool isCommunication(const Instruction &instruction) {
  Opcode opcode = instruction.opcode();
  return opcode == Opcode::PostSend || opcode == Opcode::PostRecv ||
         opcode == Opcode::Wait || opcode == Opcode::AllReduceStart;
}

/// Exchanges two random neighbouring instructions, unless this would change
/// which posts match: every wait stays after its post, and the posts of each
/// channel and communicator keep their order.
void exchangeSome(ProgramT &program, std::mt19937 &random) {
  WorkerT &worker = *program.workers[random() % program.workers.size()];
  std::vector<Instruction> &stream = worker.instructions;
  auto i = static_cast<uint32_t>(1 + random() % (stream.size() - 1));
  const Instruction &before = stream[i - 1], &after = stream[i];
  bool movable = isCommunication(before) || isCommunication(after);
  bool isOwnWait = after.opcode() == Opcode::Wait && after.target() == i - 1;
  bool isSameQueue = before.opcode() == after.opcode() &&
                     before.opcode() != Opcode::Wait &&
                     before.target() == after.target();
  if (!movable || isOwnWait || isSameQueue)
    return;
  std::swap(stream[i - 1], stream[i]);
  for (Instruction &each : stream)
    if (each.opcode() == Opcode::Wait &&
        (each.target() == i || each.target() == i - 1))
      each.mutate_target(2 * i - 1 - each.target());
}

/// Moves the waits for some sends of a random worker to directly after their
/// posts.
void inlineSome(ProgramT &program, std::mt19937 &random) {
  WorkerT &worker = *program.workers[random() % program.workers.size()];
  std::vector<Instruction> &stream = worker.instructions;
  for (uint32_t wait = 0; wait < stream.size(); ++wait) {
    uint32_t post = stream[wait].target();
    if (stream[wait].opcode() != Opcode::Wait ||
        stream[post].opcode() != Opcode::PostSend || random() % 4 == 0)
      continue;
    std::rotate(stream.begin() + post + 1, stream.begin() + wait,
                stream.begin() + wait + 1);
    for (Instruction &each : stream)
      if (each.opcode() == Opcode::Wait && each.target() > post &&
          each.target() < wait)
        each.mutate_target(each.target() + 1);
  }
}

/// Groups the consecutive posts at a random position of a random worker, if
/// there are any.
void groupSome(ProgramT &program, std::mt19937 &random) {
  WorkerT &worker = *program.workers[random() % program.workers.size()];
  std::vector<Instruction> &stream = worker.instructions;
  auto isPost = [&](uint32_t i) {
    return i < stream.size() && (stream[i].opcode() == Opcode::PostSend ||
                                 stream[i].opcode() == Opcode::PostRecv);
  };
  auto first = static_cast<uint32_t>(random() % stream.size());
  for (uint32_t i = 0; i <= first; ++i)
    if (stream[i].opcode() == Opcode::Group && i + stream[i].target() >= first)
      return;
  uint32_t posts = 0;
  for (uint32_t most = 1 + random() % 3; posts < most && isPost(first + posts);)
    ++posts;
  if (posts == 0)
    return;
  Instruction group;
  group.mutate_opcode(Opcode::Group);
  group.mutate_target(posts);
  group.mutate_parts(1);
  group.mutate_location(UINT32_MAX);
  for (Instruction &each : stream)
    if (each.opcode() == Opcode::Wait && each.target() >= first)
      each.mutate_target(each.target() + 1);
  stream.insert(stream.begin() + first, group);
  ++worker.body_end;
}

constexpr MessageModel kModels[] = {
    MessageModel::Buffered, MessageModel::Rendezvous,
    MessageModel::StreamPerDirection, MessageModel::StreamPerPair,
    MessageModel::StreamPerDevice};

/// The event graph that Verify.h defines: events of the instructions, with an
/// edge from each event to the events that must wait for it.
class Graph {
public:
  explicit Graph(const ProgramT &program) : program(program) {
    addStreams();
    addOperations();
    addPartners();
    run();
  }

  bool hasCycle() const {
    return std::ranges::find(happened, false) != happened.end();
  }

  /// Of all cycles of events that never happen: the fewest steps from one
  /// worker to another in a cycle, and the smallest worker in all cycles with
  /// so few steps. Only events are considered before which everything on their
  /// worker has happened. An operation needs its partners when it takes effect.
  /// Requires a cycle.
  std::pair<uint32_t, uint32_t> shortestCycle() const {
    // For each event, the events for which it waits. Each has the cost 1 if it
    // is on another worker, otherwise 0.
    std::vector<std::vector<std::pair<uint32_t, uint32_t>>> reasons(
        events.size());
    for (uint32_t from = 0; from < events.size(); ++from)
      for (uint32_t to : edges[from]) {
        if (happened[from] || happened[to])
          continue;
        bool crosses = events[from].worker != events[to].worker &&
                       events[to].worker != kNobody;
        if (isOfStream(to) && to != frontier(events[to].worker))
          continue;
        if (events[to].kind == Finished && from != to - 1 && !happened[to - 1])
          continue;
        reasons[to].emplace_back(
            isOfStream(from) ? frontier(events[from].worker) : from, crosses);
      }
    std::pair<uint32_t, uint32_t> best(UINT32_MAX, kNobody);
    for (uint32_t first = 0; first < events.size(); ++first) {
      std::vector<uint32_t> distance(events.size(), UINT32_MAX);
      std::deque<std::pair<uint32_t, uint32_t>> queue = {{0, first}};
      while (!queue.empty()) {
        auto [steps, event] = queue.front();
        queue.pop_front();
        for (auto [reason, cost] : reasons[event]) {
          if (steps + cost >= distance[reason])
            continue;
          distance[reason] = steps + cost;
          if (cost == 0)
            queue.emplace_front(steps, reason);
          else
            queue.emplace_back(steps + 1, reason);
        }
      }
      best = std::min(best, {distance[first], events[first].worker});
    }
    return best;
  }

private:
  enum Kind { Reached, Complete, InEffect, Finished, Joint };
  static constexpr uint32_t kNobody = UINT32_MAX;
  struct Event {
    Kind kind;
    uint32_t worker;
  };
  /// Two events of a post or start: the event for which its partners wait, and
  /// the event that waits for its partners.
  struct Ends {
    uint32_t from, to;
  };

  uint32_t add(Kind kind, uint32_t worker) {
    events.push_back({kind, worker});
    edges.emplace_back();
    return static_cast<uint32_t>(events.size() - 1);
  }
  bool isOfStream(uint32_t event) const {
    return events[event].kind == Reached || events[event].kind == Complete;
  }
  uint32_t reached(uint32_t w, uint32_t i) const { return base[w] + 2 * i; }
  bool isStreamed() const {
    return program.message_model != MessageModel::Buffered &&
           program.message_model != MessageModel::Rendezvous;
  }

  void addStreams() {
    for (uint32_t w = 0; w < program.workers.size(); ++w) {
      const auto &stream = program.workers[w]->instructions;
      base.push_back(static_cast<uint32_t>(events.size()));
      for (uint32_t i = 0; i < stream.size(); ++i) {
        uint32_t begin = add(Reached, w);
        uint32_t end = add(Complete, w);
        edges[begin].push_back(end);
        if (i > 0)
          edges[begin - 1].push_back(begin);
      }
      std::vector<Ends> &own = ends.emplace_back(stream.size());
      for (uint32_t i = 0; i < stream.size(); ++i)
        if (stream[i].opcode() == Opcode::Wait)
          own[stream[i].target()] = {reached(w, stream[i].target()),
                                     reached(w, i) + 1};
    }
  }

  /// The name of the communication stream on which a worker runs a post or
  /// start.
  std::string streamOf(const Instruction &instruction) const {
    std::string name;
    if (program.message_model == MessageModel::StreamPerDevice)
      return name;
    if (instruction.opcode() == Opcode::AllReduceStart) {
      std::set<uint32_t> members;
      for (const Contribution &contribution :
           program.communicators[instruction.target()]->contributions)
        members.insert(contribution.worker());
      for (uint32_t member : members)
        name += "," + std::to_string(member);
      return name;
    }
    name = std::to_string(instruction.target());
    if (program.message_model == MessageModel::StreamPerDirection)
      name += instruction.opcode() == Opcode::PostSend ? " out" : " in";
    return name;
  }

  /// The posts and starts on a communication stream take effect one after
  /// another.
  void addOperations() {
    for (uint32_t w = 0; isStreamed() && w < program.workers.size(); ++w) {
      const auto &stream = program.workers[w]->instructions;
      // By stream, the end of its last operation.
      std::map<std::string, uint32_t> last;
      for (uint32_t i = 0; i < stream.size(); ++i) {
        uint32_t begin = i, end = i + 1;
        if (stream[i].opcode() == Opcode::Group) {
          begin = i + 1;
          end = begin + stream[i].target();
        } else if (stream[i].opcode() != Opcode::PostSend &&
                   stream[i].opcode() != Opcode::PostRecv &&
                   stream[i].opcode() != Opcode::AllReduceStart) {
          continue;
        }
        std::map<std::string, uint32_t> operations;
        for (uint32_t k = begin; k < end; ++k) {
          std::string name = streamOf(stream[k]);
          auto [entry, isNew] = operations.try_emplace(name, 0);
          if (isNew) {
            entry->second = add(InEffect, w);
            uint32_t finished = add(Finished, w);
            edges[entry->second].push_back(finished);
            if (auto before = last.find(name); before != last.end())
              edges[before->second].push_back(entry->second);
            last[name] = finished;
          }
          edges[ends[w][k].from].push_back(entry->second);
          edges[entry->second + 1].push_back(ends[w][k].to);
          ends[w][k] = {entry->second, entry->second + 1};
        }
        i = end - 1;
      }
    }
  }

  void addPartners() {
    // Sends and receives by channel (sender and receiver). Starts by
    // communicator and the number of the start on its worker.
    std::map<std::pair<uint32_t, uint32_t>, std::vector<Ends>> sends, receives;
    std::map<std::pair<uint32_t, size_t>, std::vector<Ends>> reduces;
    for (uint32_t w = 0; w < program.workers.size(); ++w) {
      const auto &stream = program.workers[w]->instructions;
      std::map<uint32_t, size_t> started;
      for (uint32_t i = 0; i < stream.size(); ++i) {
        uint32_t target = stream[i].target();
        if (stream[i].opcode() == Opcode::PostSend)
          sends[{w, target}].push_back(ends[w][i]);
        else if (stream[i].opcode() == Opcode::PostRecv)
          receives[{target, w}].push_back(ends[w][i]);
        else if (stream[i].opcode() == Opcode::AllReduceStart)
          reduces[{target, started[target]++}].push_back(ends[w][i]);
      }
    }
    for (const auto &[channel, queue] : sends)
      for (size_t k = 0; k < queue.size(); ++k) {
        const Ends &receive = receives[channel][k];
        edges[queue[k].from].push_back(receive.to);
        if (program.message_model != MessageModel::Buffered)
          edges[receive.from].push_back(queue[k].to);
      }
    for (const auto &[id, members] : reduces) {
      uint32_t joint = add(Joint, kNobody);
      for (const Ends &member : members) {
        edges[member.from].push_back(joint);
        edges[joint].push_back(member.to);
      }
    }
  }

  /// Marks all events that can happen.
  void run() {
    happened.assign(events.size(), false);
    std::vector<uint32_t> incoming(events.size()), ready;
    for (const auto &targets : edges)
      for (uint32_t target : targets)
        ++incoming[target];
    for (uint32_t event = 0; event < events.size(); ++event)
      if (incoming[event] == 0)
        ready.push_back(event);
    while (!ready.empty()) {
      uint32_t event = ready.back();
      ready.pop_back();
      happened[event] = true;
      for (uint32_t target : edges[event])
        if (--incoming[target] == 0)
          ready.push_back(target);
    }
  }

  /// The first event of a worker's instruction stream that does not happen.
  uint32_t frontier(uint32_t w) const {
    uint32_t event = base[w];
    while (happened[event])
      ++event;
    return event;
  }

  const ProgramT &program;
  std::vector<Event> events;
  std::vector<std::vector<uint32_t>> edges;
  std::vector<uint32_t> base;          ///< the first event of each worker
  std::vector<std::vector<Ends>> ends; ///< by worker, then instruction
  std::vector<bool> happened;
};

/// The number of random programs. The environment variable
/// CHIMERA_RANDOM_PROGRAMS changes it.
uint32_t programCount() {
  const char *count = std::getenv("CHIMERA_RANDOM_PROGRAMS");
  return count ? static_cast<uint32_t>(std::strtoul(count, nullptr, 10))
               : 10'000;
}

TEST(VerifyDeadlock, AgreesWithTheEventGraphOnRandomPrograms) {
  std::map<MessageModel, uint32_t> deadlocks;
  std::map<uint32_t, uint32_t> lengths;
  uint32_t programs = programCount();
  for (uint32_t round = 0; round < programs; ++round) {
    std::mt19937 random(round);
    auto workers = static_cast<uint32_t>(2 + random() % 5);
    auto microBatches = static_cast<uint32_t>(1 + random() % 4);
    // If messages go round in a ring, cycles can be long.
    bool bothWays = random() % 3 > 0;
    auto shift = static_cast<uint32_t>(bothWays ? random() % workers : 0);
    ProgramT program = samplePipeline({.workers = workers,
                                       .microBatches = microBatches,
                                       .bidirectional = bothWays,
                                       .secondPipelineShift = shift});
    for (uint32_t moves = random() % 400; moves > 0; --moves)
      exchangeSome(program, random);
    for (uint32_t times = random() % 8; times > 0; --times)
      inlineSome(program, random);
    for (uint32_t groups = random() % 3 * 10; groups > 0; --groups)
      groupSome(program, random);
    bool before = false;
    for (MessageModel model : kModels) {
      program.message_model = model;
      std::vector<Violation> violations = verifyProgram(program);
      bool found = !violations.empty() &&
                   violations[0].rule == Violation::Rule::Deadlock;
      // The moved instructions may misuse buffers now, but the messages must
      // still match. So there is no violation of a rule before the deadlock
      // rule.
      for (const Violation &violation : violations)
        ASSERT_GE(violation.rule, Violation::Rule::Deadlock)
            << violation.message;
      Graph graph(program);
      ASSERT_EQ(found, graph.hasCycle())
          << "program " << round << " under " << nameOf(model);
      // Each message model is stricter than the previous one. So a program with
      // a deadlock under the previous model also has one under this model.
      ASSERT_LE(before, found) << "program " << round;
      before = found;
      deadlocks[model] += found;
      if (!found)
        continue;
      auto [length, worker] = graph.shortestCycle();
      ++lengths[length];
      ASSERT_NE(violations[0].message.find(
                    "a cycle of " + std::to_string(length) + ":\n    rank " +
                    std::to_string(worker) + ":"),
                std::string::npos)
          << "program " << round << ", expected " << length
          << " links from worker " << worker << ", got "
          << violations[0].message;
    }
  }
  std::cout << programs << " programs; deadlocks:";
  for (MessageModel model : kModels)
    std::cout << " " << deadlocks[model] << " " << nameOf(model);
  std::cout << "; cycles by length:";
  for (auto [length, count] : lengths)
    std::cout << " " << length << ": " << count;
  std::cout << std::endl;
  // Programs with and without deadlocks must both be frequent, or the test
  // would show little.
  EXPECT_GT(deadlocks[MessageModel::Buffered], 0u);
  EXPECT_GT(deadlocks[MessageModel::Rendezvous],
            deadlocks[MessageModel::Buffered] + programs / 100);
  EXPECT_GT(deadlocks[MessageModel::StreamPerDirection],
            deadlocks[MessageModel::Rendezvous]);
  EXPECT_GT(deadlocks[MessageModel::StreamPerPair],
            deadlocks[MessageModel::StreamPerDirection]);
  EXPECT_GT(deadlocks[MessageModel::StreamPerDevice],
            deadlocks[MessageModel::StreamPerPair]);
  EXPECT_LT(deadlocks[MessageModel::StreamPerDevice], programs * 19 / 20);
  EXPECT_GT(lengths.rbegin()->first, 4u);
}

} // namespace
} // namespace chimera::program
