//===- VerifyDeadlock.cpp - Abstract execution of the streams -------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs every stream as far as it gets, a worker at a time. What a wait needs
// never becomes false again, so the order in which workers run does not matter:
// all end, or the state in which they are stuck is the same.
//
//===----------------------------------------------------------------------===//

#include "runtime/program/VerifyInternal.h"

#include <algorithm>

namespace chimera::program::verify {

namespace {

class Machine {
public:
  Machine(const ProgramT &program, const Facts &facts, Report &report)
      : program(program), facts(facts), report(report),
        rendezvous(program.message_model == MessageModel::Rendezvous),
        next(program.workers.size()), blocks(program.workers.size()),
        arrived(facts.communicatorOf.size()) {}

  void run() {
    auto workers = static_cast<uint32_t>(program.workers.size());
    for (uint32_t w = workers; w-- > 0;)
      runnable.push_back(w);
    while (!runnable.empty()) {
      uint32_t w = runnable.back();
      runnable.pop_back();
      advance(w);
    }
    for (uint32_t w = 0; w < workers; ++w)
      if (isStuck(w))
        return reportCycle(w);
  }

private:
  /// What a worker waits for: that `peer` reaches its instruction `index`, or
  /// that all members of the all-reduce `reduce` have started.
  struct Block {
    uint32_t peer = kNone;
    uint32_t index = 0;
    uint32_t reduce = kNone;
  };

  bool isStuck(uint32_t w) const {
    return next[w] < program.workers[w]->instructions.size();
  }

  void advance(uint32_t w) {
    const std::vector<Instruction> &stream = program.workers[w]->instructions;
    const std::vector<uint32_t> &mate = facts.mate[w];
    blocks[w] = Block();
    for (uint32_t i = next[w]; i < stream.size(); ++i) {
      switch (stream[i].opcode()) {
      case Opcode::PostSend:
      case Opcode::PostRecv: {
        uint32_t peer = stream[i].target();
        if (blocks[peer].peer == w && blocks[peer].index == i)
          wake(peer);
        break;
      }
      case Opcode::AllReduceStart:
        start(mate[i]);
        break;
      case Opcode::Wait: {
        uint32_t target = stream[i].target();
        next[w] = i;
        if (block(w, stream[target], mate[target]))
          return;
        break;
      }
      default:
        break;
      }
    }
    next[w] = static_cast<uint32_t>(stream.size());
  }

  /// Whether worker `w` must wait for what completes `post`.
  bool block(uint32_t w, const Instruction &post, uint32_t mate) {
    if (post.opcode() == Opcode::AllReduceStart) {
      if (arrived[mate] == facts.members[post.target()].size())
        return false;
      blocks[w].reduce = mate;
      return true;
    }
    if (post.opcode() == Opcode::PostSend && !rendezvous)
      return false;
    // A peer that is not running stands at a wait, before which all is done.
    if (next[post.target()] > mate)
      return false;
    blocks[w].peer = post.target();
    blocks[w].index = mate;
    return true;
  }

  void start(uint32_t reduce) {
    const std::vector<Member> &members =
        facts.members[facts.communicatorOf[reduce]];
    if (++arrived[reduce] == members.size())
      for (const Member &member : members)
        if (blocks[member.worker].reduce == reduce)
          wake(member.worker);
  }

  void wake(uint32_t w) {
    blocks[w] = Block();
    runnable.push_back(w);
  }

  /// The worker that stuck worker `w` waits for, itself stuck, and the index of
  /// what it has not reached.
  std::pair<uint32_t, uint32_t> awaited(uint32_t w) const {
    const Block &block = blocks[w];
    if (block.reduce == kNone)
      return {block.peer, block.index};
    for (const Member &member :
         facts.members[facts.communicatorOf[block.reduce]]) {
      const std::vector<uint32_t> &mate = facts.mate[member.worker];
      const auto &stream = program.workers[member.worker]->instructions;
      for (uint32_t i = next[member.worker]; i < stream.size(); ++i)
        if (stream[i].opcode() == Opcode::AllReduceStart &&
            mate[i] == block.reduce)
          return {member.worker, i};
    }
    return {w, next[w]};
  }

  void reportCycle(uint32_t w) {
    // A stuck worker waits for a stuck one, so walking on meets a cycle.
    std::vector<uint32_t> path;
    std::vector<bool> seen(program.workers.size());
    for (; !seen[w]; w = awaited(w).first) {
      seen[w] = true;
      path.push_back(w);
    }
    path.erase(path.begin(), std::ranges::find(path, w));
    std::string message = "workers that wait for each other, under the " +
                          std::string(rendezvous ? "rendezvous" : "buffered") +
                          " model:";
    for (uint32_t waiting : path) {
      auto [peer, index] = awaited(waiting);
      message += "\n    " + report.name(waiting, next[waiting]) +
                 " waits until worker " + text(peer) +
                 " reaches its instruction " + text(index) + " (" +
                 describe(program, peer, index) + ")";
    }
    report.add(Rule::Deadlock, message);
  }

  const ProgramT &program;
  const Facts &facts;
  Report &report;
  bool rendezvous;
  std::vector<uint32_t> next;    ///< by worker, where it stands
  std::vector<Block> blocks;     ///< by worker
  std::vector<uint32_t> arrived; ///< by all-reduce, members that started it
  std::vector<uint32_t> runnable;
};

} // namespace

void verifyDeadlock(const ProgramT &program, const Facts &facts,
                    Report &report) {
  Machine(program, facts, report).run();
}

} // namespace chimera::program::verify
