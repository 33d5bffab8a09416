//===- Messages.cpp - Waits, channels and all-reduces ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/Facts.h"

#include <algorithm>
#include <utility>

namespace chimera::program::verify {

void verifyWaits(const ProgramT &program, Facts &facts, Report &report) {
  for (uint32_t w = 0; w < program.workers.size(); ++w) {
    const WorkerT &worker = *program.workers[w];
    auto fail = [&](uint32_t index, const std::string &message) {
      report.add(Rule::Waits, w, index, message);
    };
    std::vector<uint32_t> &waitOf = facts.waitOf.emplace_back();
    waitOf.assign(worker.instructions.size(), kNone);
    auto completes = [](Opcode opcode) {
      return opcode == Opcode::PostSend || opcode == Opcode::PostRecv ||
             opcode == Opcode::AllReduceStart;
    };
    for (Section range : sectionsOf(worker)) {
      for (uint32_t i = range.begin; i < range.end; ++i) {
        const Instruction &wait = worker.instructions[i];
        if (wait.opcode() != Opcode::Wait)
          continue;
        uint32_t target = wait.target();
        if (target >= i || target < range.begin)
          fail(i, "expected a post or start before it in its section [" +
                      text(range.begin) + ", " + text(range.end) +
                      "), got instruction " + text(target));
        else if (!completes(worker.instructions[target].opcode()))
          fail(i, "expected a post or start, got " + report.name(w, target));
        else if (waitOf[target] != kNone)
          fail(i, "instruction " + text(target) +
                      " already has a wait, instruction " +
                      text(waitOf[target]));
        else
          waitOf[target] = i;
      }
      for (uint32_t i = range.begin; i < range.end; ++i)
        if (waitOf[i] == kNone && completes(worker.instructions[i].opcode()))
          fail(i, "no wait after it in its section");
      if (report.full())
        return;
    }
  }
}

namespace {

/// Sorts `refs` by key(ref), a number less than `keys`. The sort is stable and
/// takes linear time.
template <typename Key>
void sortBy(std::vector<InstructionRef> &refs, size_t keys, Key key) {
  std::vector<size_t> starts(keys + 1);
  for (const InstructionRef &ref : refs)
    ++starts[key(ref) + 1];
  for (size_t k = 0; k < keys; ++k)
    starts[k + 1] += starts[k];
  std::vector<InstructionRef> sorted(refs.size());
  for (const InstructionRef &ref : refs)
    sorted[starts[key(ref)]++] = ref;
  refs = std::move(sorted);
}

class Matcher {
public:
  Matcher(const ProgramT &program, Facts &facts, Report &report)
      : program(program), facts(facts), report(report) {}

  void run() {
    for (const auto &worker : program.workers)
      facts.match.emplace_back(worker->instructions.size(), kNone);
    // Match each section separately: every message is sent and received in the
    // same section. So the body may run any number of times.
    for (size_t section = 0; section < kSections; ++section) {
      collect(section);
      matchChannels();
      matchStarts(section);
    }
  }

private:
  const Instruction &at(InstructionRef ref) const {
    return program.workers[ref.worker]->instructions[ref.index];
  }
  uint32_t &matchOf(InstructionRef ref) {
    return facts.match[ref.worker][ref.index];
  }
  uint32_t peerOf(InstructionRef ref) const { return at(ref).target(); }

  uint64_t bytesOf(InstructionRef ref) const {
    const WorkerT &worker = *program.workers[ref.worker];
    // A post has one buffer. A start has several buffers, but all have the same
    // size. So use the first buffer.
    return worker.buffers[worker.operands[at(ref).first_operand()]].bytes();
  }

  /// Collects the sends, receives and starts of a section, ordered by worker
  /// and then by index.
  void collect(size_t section) {
    sends.clear();
    receives.clear();
    starts.clear();
    for (uint32_t w = 0; w < program.workers.size(); ++w) {
      const WorkerT &worker = *program.workers[w];
      Section range = sectionsOf(worker)[section];
      for (uint32_t i = range.begin; i < range.end; ++i) {
        Opcode opcode = worker.instructions[i].opcode();
        if (opcode == Opcode::PostSend)
          sends.push_back({w, i});
        else if (opcode == Opcode::PostRecv)
          receives.push_back({w, i});
        else if (opcode == Opcode::AllReduceStart)
          starts.push_back({w, i});
      }
    }
  }

  void matchChannels() {
    // Sort the sends and the receives by destination, then by source, then by
    // index. Before this, the two lists are ordered by the worker of the post
    // and then by index.
    size_t workers = program.workers.size();
    auto own = [](InstructionRef ref) { return ref.worker; };
    auto peer = [this](InstructionRef ref) { return peerOf(ref); };
    sortBy(sends, workers, peer);
    sortBy(receives, workers, peer);
    sortBy(receives, workers, own);
    size_t s = 0, r = 0;
    while ((s < sends.size() || r < receives.size()) && !report.full()) {
      using Channel = std::pair<uint32_t, uint32_t>; // destination, source
      constexpr Channel kEnd = {kNone, kNone};
      Channel ofSend =
          s < sends.size() ? Channel(peerOf(sends[s]), sends[s].worker) : kEnd;
      Channel ofReceive = r < receives.size()
                              ? Channel(receives[r].worker, peerOf(receives[r]))
                              : kEnd;
      matchChannel(std::min(ofSend, ofReceive), s, r);
    }
  }

  void matchChannel(std::pair<uint32_t, uint32_t> channel, size_t &s,
                    size_t &r) {
    auto [destination, source] = channel;
    bool agreed = true;
    for (size_t k = 0;; ++k) {
      bool hasSend = s < sends.size() && sends[s].worker == source &&
                     peerOf(sends[s]) == destination;
      bool hasReceive = r < receives.size() &&
                        receives[r].worker == destination &&
                        peerOf(receives[r]) == source;
      if (!hasSend && !hasReceive)
        return;
      // Report only the first difference of a channel, because it can cause all
      // later differences.
      if (agreed && !(hasSend && hasReceive && agree(sends[s], receives[r]))) {
        agreed = false;
        auto side = [&](bool has, InstructionRef ref, const char *what) {
          return has ? report.name(ref.worker, ref.index) + " with " +
                           text(bytesOf(ref)) + " bytes"
                     : std::string("no ") + what;
        };
        InstructionRef first = hasSend ? sends[s] : receives[r];
        report.addAt(
            Rule::Matching, first.worker, first.index,
            "channel from worker " + text(source) + " to worker " +
                text(destination) + ": expected send " + text(k) +
                " and receive " + text(k) + " to agree, got " +
                side(hasSend, hasSend ? sends[s] : InstructionRef(), "send") +
                " and " +
                side(hasReceive, hasReceive ? receives[r] : InstructionRef(),
                     "receive"));
      } else if (agreed) {
        matchOf(sends[s]) = receives[r].index;
        matchOf(receives[r]) = sends[s].index;
      }
      s += hasSend;
      r += hasReceive;
    }
  }

  bool agree(InstructionRef send, InstructionRef receive) const {
    const Instruction &left = at(send);
    const Instruction &right = at(receive);
    return left.kind() == right.kind() && left.pipeline() == right.pipeline() &&
           left.stage() == right.stage() &&
           left.micro_batch() == right.micro_batch() &&
           left.micro_batches() == right.micro_batches() &&
           left.part() == right.part() && left.parts() == right.parts() &&
           bytesOf(send) == bytesOf(receive);
  }

  void matchStarts(size_t section) {
    sortBy(starts, program.communicators.size(),
           [this](InstructionRef ref) { return peerOf(ref); });
    size_t next = 0;
    for (uint32_t c = 0; c < program.communicators.size(); ++c) {
      const std::vector<Member> &members = facts.members[c];
      auto first = static_cast<uint32_t>(facts.communicatorOf.size());
      std::vector<InstructionRef> expected; // the starts of the first member
      const CommunicatorT &communicator = *program.communicators[c];
      for (const Member &member : members) {
        bool isFirst = &member == &members.front();
        size_t k = 0;
        for (; next < starts.size() && peerOf(starts[next]) == c &&
               starts[next].worker == member.worker;
             ++next, ++k) {
          matchOf(starts[next]) = first + static_cast<uint32_t>(k);
          if (isFirst)
            expected.push_back(starts[next]);
          else if (k < expected.size() &&
                   (bytesOf(expected[k]) != bytesOf(starts[next]) ||
                    !sameBucket(communicator, expected[k], starts[next])))
            fail(c, starts[next],
                 "start " + text(k) + " of equal buckets and bytes, got " +
                     report.name(expected[k].worker, expected[k].index) +
                     " with " + text(bytesOf(expected[k])) + " and " +
                     report.name(starts[next].worker, starts[next].index) +
                     " with " + text(bytesOf(starts[next])));
        }
        if (k != expected.size())
          fail(c,
               k > expected.size() ? starts[next - k + expected.size()]
                                   : expected[k],
               text(expected.size()) + " starts at worker " +
                   text(member.worker) + " as at worker " +
                   text(members.front().worker) + ", got " + text(k));
      }
      // Every step must sum all its losses. Gradients need no such check here:
      // verifyWeights finds a missing gradient at the update that needs it.
      size_t summed = communicator.contributions.size();
      if (communicator.kind == ValueKind::Loss &&
          summed != program.micro_batches)
        fail(c, "the losses of all " + text(program.micro_batches) +
                    " micro-batches, got " + text(summed));
      if (communicator.kind == ValueKind::Loss && expected.empty() &&
          reports(section))
        fail(c, std::string("the losses to be summed in ") +
                    (section == kBody ? "the body" : "the epilogue") +
                    ", got no start");
      facts.communicatorOf.resize(first + expected.size(), c);
      if (report.full())
        return;
    }
  }

  /// Whether two starts sum the same bucket of a gradient. Always true for
  /// all-reduces of losses and squared norms, which have no buckets.
  bool sameBucket(const CommunicatorT &communicator, InstructionRef left,
                  InstructionRef right) const {
    auto buckets = [&](InstructionRef ref) {
      return std::max<uint32_t>(1, at(ref).micro_batches());
    };
    return communicator.kind != ValueKind::WeightGradient ||
           (at(left).micro_batch() == at(right).micro_batch() &&
            buckets(left) == buckets(right));
  }

  /// Whether the section is the end of a step.
  bool reports(size_t section) const {
    return section == kBody ||
           (section == kEpilogue && program.updates != Updates::Flush);
  }

  void fail(uint32_t communicator, const std::string &message) {
    report.add(Rule::Matching,
               "communicator " + text(communicator) + ": expected " + message);
  }
  void fail(uint32_t communicator, InstructionRef ref,
            const std::string &message) {
    report.addAt(Rule::Matching, ref.worker, ref.index,
                 "communicator " + text(communicator) + ": expected " +
                     message);
  }

  const ProgramT &program;
  Facts &facts;
  Report &report;
  std::vector<InstructionRef> sends, receives, starts;
};

} // namespace

void verifyMatching(const ProgramT &program, Facts &facts, Report &report) {
  Matcher(program, facts, report).run();
}

} // namespace chimera::program::verify
