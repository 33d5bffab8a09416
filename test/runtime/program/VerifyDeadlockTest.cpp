//===- VerifyDeadlockTest.cpp - Against the event graph -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The verifier decides deadlock by running the streams. Here the graph of
// Verify.h is built as it is written there and searched for a cycle, for
// programs whose posts, waits and starts were moved about at random.
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Verify.h"
#include "test/runtime/program/SamplePrograms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace chimera::program {
namespace {

bool isCommunication(const Instruction &instruction) {
  Opcode opcode = instruction.opcode();
  return opcode == Opcode::PostSend || opcode == Opcode::PostRecv ||
         opcode == Opcode::Wait || opcode == Opcode::AllReduceStart;
}

/// Exchanges two neighbours where that keeps every wait behind its post and
/// the order inside channels and communicators, that is, the matching.
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

/// The event graph.
class Graph {
public:
  explicit Graph(const ProgramT &program) {
    uint32_t events = 0;
    std::vector<uint32_t> base;
    for (const auto &worker : program.workers) {
      base.push_back(events);
      events += 2 * static_cast<uint32_t>(worker->instructions.size());
    }
    edges.resize(events);
    // By channel and kind of post: the events of the posts and of their waits.
    using Queue = std::vector<std::pair<uint32_t, uint32_t>>;
    std::map<std::pair<uint32_t, uint32_t>, Queue> sends, receives;
    std::map<std::pair<uint32_t, size_t>, Queue> reduces;
    for (uint32_t w = 0; w < program.workers.size(); ++w) {
      const auto &stream = program.workers[w]->instructions;
      std::map<uint32_t, size_t> started;
      auto reached = [&](uint32_t i) { return base[w] + 2 * i; };
      auto complete = [&](uint32_t i) { return base[w] + 2 * i + 1; };
      std::vector<uint32_t> waitOf(stream.size());
      for (uint32_t i = 0; i < stream.size(); ++i)
        if (stream[i].opcode() == Opcode::Wait)
          waitOf[stream[i].target()] = i;
      for (uint32_t i = 0; i < stream.size(); ++i) {
        edges[reached(i)].push_back(complete(i));
        if (i + 1 < stream.size())
          edges[complete(i)].push_back(reached(i + 1));
        std::pair ends(reached(i), complete(waitOf[i]));
        uint32_t target = stream[i].target();
        if (stream[i].opcode() == Opcode::PostSend)
          sends[{w, target}].push_back(ends);
        else if (stream[i].opcode() == Opcode::PostRecv)
          receives[{target, w}].push_back(ends);
        else if (stream[i].opcode() == Opcode::AllReduceStart)
          reduces[{target, started[target]++}].push_back(ends);
      }
    }
    for (const auto &[channel, queue] : sends)
      for (size_t k = 0; k < queue.size(); ++k) {
        const auto &[receive, receiveWait] = receives[channel][k];
        edges[queue[k].first].push_back(receiveWait);
        if (program.message_model == MessageModel::Rendezvous)
          edges[receive].push_back(queue[k].second);
      }
    for (const auto &[id, members] : reduces) {
      auto joint = static_cast<uint32_t>(edges.size());
      edges.emplace_back();
      for (const auto &[start, wait] : members) {
        edges[start].push_back(joint);
        edges[joint].push_back(wait);
      }
    }
  }

  bool hasCycle() const {
    std::vector<uint32_t> incoming(edges.size()), ready;
    for (const auto &targets : edges)
      for (uint32_t target : targets)
        ++incoming[target];
    for (uint32_t event = 0; event < edges.size(); ++event)
      if (incoming[event] == 0)
        ready.push_back(event);
    size_t removed = 0;
    for (; !ready.empty(); ++removed) {
      uint32_t event = ready.back();
      ready.pop_back();
      for (uint32_t target : edges[event])
        if (--incoming[target] == 0)
          ready.push_back(target);
    }
    return removed < edges.size();
  }

private:
  std::vector<std::vector<uint32_t>> edges;
};

TEST(VerifyDeadlock, AgreesWithTheEventGraphOnRandomPrograms) {
  std::mt19937 random(11);
  int deadlocks[2] = {0, 0};
  constexpr int kPrograms = 3000;
  for (int round = 0; round < kPrograms; ++round) {
    ProgramT program =
        samplePipeline({.workers = static_cast<uint32_t>(2 + random() % 3),
                        .microBatches = static_cast<uint32_t>(1 + random() % 4),
                        .bidirectional = random() % 2 == 0});
    for (uint32_t moves = random() % 400; moves > 0; --moves)
      exchangeSome(program, random);
    for (MessageModel model :
         {MessageModel::Rendezvous, MessageModel::Buffered}) {
      program.message_model = model;
      std::vector<Violation> violations = verifyProgram(program);
      bool found = !violations.empty() &&
                   violations[0].rule == Violation::Rule::Deadlock;
      // What is left may misuse buffers, but is matched.
      for (const Violation &violation : violations)
        ASSERT_GE(violation.rule, Violation::Rule::Deadlock)
            << violation.message;
      ASSERT_EQ(found, Graph(program).hasCycle()) << "program " << round;
      deadlocks[int(model)] += found;
    }
  }
  // Both answers occur often enough to mean something.
  EXPECT_GT(deadlocks[0], kPrograms / 20);
  EXPECT_LT(deadlocks[0], kPrograms * 19 / 20);
  EXPECT_GT(deadlocks[1], 0);
  EXPECT_LE(deadlocks[1], deadlocks[0]);
}

} // namespace
} // namespace chimera::program
