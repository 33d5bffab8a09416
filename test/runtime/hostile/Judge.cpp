//===- Judge.cpp - Decides whether a mutant passes ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/hostile/Judge.h"

#include "runtime/random/Mix.h"
#include "test/runtime/hostile/Peaks.h"
#include "test/runtime/hostile/Refusal.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <iterator>
#include <numeric>

using namespace chimera;
using namespace chimera::runtime;
using namespace chimera::runtime::hostile;
using program::ProgramT;
using program::Violation;
using Rule = program::Violation::Rule;

namespace {
/// The names of the rules, indexed by Violation::Rule.
constexpr const char *kRuleNames[] = {"structure", "waits",   "matching",
                                      "deadlock",  "buffers", "values",
                                      "weights",   "memory",  "cap"};
static_assert(std::size(kRuleNames) == Counts::kRules);

/// The first difference between a mutant and its original.
std::string firstChange(const ProgramT &base, const ProgramT &mutant) {
  for (uint32_t w = 0; w < base.workers.size(); ++w) {
    const program::WorkerT &before = *base.workers[w];
    const program::WorkerT &after = *mutant.workers[w];
    std::string worker = "worker " + std::to_string(w) + " ";
    for (uint32_t i = 0; i < before.instructions.size(); ++i) {
      std::string at = worker + "instruction " + std::to_string(i) + " (";
      std::string was = program::describe(base, w, i);
      if (i >= after.instructions.size())
        return at + was + " is gone)";
      std::string is = program::describe(mutant, w, i);
      const program::Instruction &left = before.instructions[i];
      const program::Instruction &right = after.instructions[i];
      if (was != is || left.target() != right.target())
        return at + was + ", now " + is + ")";
      if (!std::ranges::equal(program::operandsOf(before, left),
                              program::operandsOf(after, right)) ||
          !std::ranges::equal(program::resultsOf(before, left),
                              program::resultsOf(after, right)))
        return at + was + ", now of other buffers)";
    }
    if (before.instructions.size() != after.instructions.size())
      return worker + "has more instructions";
  }
  return "no instruction";
}

/// Whether a program may run although this rule refuses it: every access of its
/// runs is still within its memory.
bool canRunAnyway(Rule rule) {
  return rule == Rule::Values || rule == Rule::Weights ||
         rule == Rule::Memory || rule == Rule::Cap;
}

/// Whether a program that is refused for a deadlock may run until it stops: all
/// its accesses are within its memory, and it has no other fault that a stage
/// would notice.
bool canRunUntilItStops(const ProgramT &program) {
  program::verify::Facts facts;
  program::verify::Report report(program);
  program::verify::verifyTables(program, facts, report);
  program::verify::verifyActions(program, facts, report);
  program::verify::verifyWaits(program, facts, report);
  program::verify::verifyMatching(program, facts, report);
  program::verify::verifyBuffers(program, report);
  if (report.empty())
    program::verify::verifyValues(program, facts, report);
  if (report.empty())
    program::verify::verifyWeights(program, facts, report);
  return report.empty();
}
} // namespace

uint64_t Counts::all() const {
  return equal + wrong + std::accumulate(refused.begin(), refused.end(), 0ull);
}

Judge::Judge(std::vector<ProgramT> programs) : counts(mutations().size() + 1) {
  for (ProgramT &program : programs) {
    SequentialResult expected = runSequentially(program, kRunSteps);
    bases.push_back({std::move(program), std::move(expected)});
  }
}

bool Judge::isEqual(const ProgramT &mutant, const Base &base, uint64_t seed,
                    std::string &found) const {
  for (const RunOptions &options : runsOf(seed, kRunSteps)) {
    Outcome outcome = run(mutant, options);
    found = difference(mutant, outcome, base.expected);
    // Some mutants describe another training run, for example with more bytes
    // of tokens. So compare also with a run of the mutant itself on one device.
    if (!found.empty() && outcome.failure.empty())
      found = difference(mutant, outcome, runSequentially(mutant, kRunSteps));
    if (!found.empty()) {
      found = "seed " + std::to_string(seed) +
              (options.model              ? " buffered: "
               : options.synchronousHosts ? ": "
                                          : " without waiting: ") +
              found;
      return false;
    }
  }
  return true;
}

std::string Judge::verdict(const ProgramT &mutant, const Base &base,
                           uint64_t seed, Counts &counts, bool mustAccept) {
  std::vector<Violation> violations = program::verifyProgram(mutant);
  std::string found;
  if (violations.empty()) {
    if (isEqual(mutant, base, seed, found)) {
      ++counts.equal;
      return {};
    }
    ++counts.wrong;
    return "accepted, but " + found;
  }
  Rule rule = violations[0].rule;
  // Under a message model with streams, a mutant that keeps its meaning may be
  // refused for a deadlock: a stream runs operations in the order of their
  // posts, and the mutation may have changed this order.
  if (mustAccept &&
      !(rule == Rule::Deadlock && program::hasStreams(mutant.message_model))) {
    ++counts.wrong;
    return "keeps its meaning, but is refused: " + violations[0].message;
  }
  ++counts.refused[static_cast<size_t>(rule)];
  counts.refusedEqual +=
      canRunAnyway(rule) && isEqual(mutant, base, seed, found);
  if (rule != Rule::Deadlock || !canRunUntilItStops(mutant))
    return {};
  Refusal refusal = runRefused(mutant, seed, kRunSteps);
  counts.refusedEnding += refusal.withoutWaiting.failure.empty();
  if (refusal.wrong.empty())
    return {};
  --counts.refused[static_cast<size_t>(rule)];
  ++counts.wrong;
  return "refused for a deadlock (" + violations[0].message + "), but " +
         refusal.wrong;
}

std::string Judge::judge(uint64_t number) {
  Random random(mix({number, 1}));
  const Base &base = random.any(bases);
  ProgramT mutant = base.program;
  std::span<const Mutation> all = mutations();
  size_t kind = random.below(all.size());
  bool keeps = all[kind].keepsMeaning;
  size_t changes = random.oneIn(4) ? 2 + random.below(2) : 1;
  std::snprintf(now, sizeof(now), "mutant %" PRIu64, number);
  std::string made = now;
  size_t row = kind;
  for (size_t c = 0, tries = 0; c < changes && tries < 100; ++tries) {
    if (c > 0) {
      kind = random.below(all.size());
      // Choose only changes like the first one: either all keep the meaning, or
      // none does.
      if (all[kind].keepsMeaning != keeps)
        continue;
      row = keeps ? row : all.size();
    }
    if (all[kind].apply(mutant, random)) {
      made += std::string(", ") + all[kind].name;
      ++c;
    } else if (c == 0) {
      row = kind = random.below(all.size());
      keeps = all[kind].keepsMeaning;
    }
  }
  std::snprintf(now, sizeof(now), "%s", made.c_str());

  // If only the stated peak is wrong, correct it in some mutants. Otherwise the
  // wrong peak would hide other faults.
  std::vector<Violation> violations = program::verifyProgram(mutant);
  if (!violations.empty() && violations[0].rule == Rule::Memory &&
      (keeps || random.oneIn(2)))
    setPeaks(mutant);
  std::string found = verdict(mutant, base, number, counts[row], keeps);
  if (found.empty())
    return {};
  return made + " of " + base.program.schedule +
         " D=" + std::to_string(base.program.workers.size()) +
         " N=" + std::to_string(base.program.micro_batches) +
         " W=" + std::to_string(base.program.data_parallel) + ": " + found +
         "\n  first change: " + firstChange(base.program, mutant);
}

Counts Judge::total() const {
  Counts sum;
  for (const Counts &each : counts) {
    sum.equal += each.equal;
    sum.wrong += each.wrong;
    sum.refusedEqual += each.refusedEqual;
    sum.refusedEnding += each.refusedEnding;
    for (size_t rule = 0; rule < Counts::kRules; ++rule)
      sum.refused[rule] += each.refused[rule];
  }
  return sum;
}

std::string Judge::table() const {
  auto cell = [](const char *text, const char *format = "%10s") {
    char buffer[64];
    std::snprintf(buffer, sizeof(buffer), format, text);
    return std::string(buffer);
  };
  auto line = [&](const char *name, const Counts &each) {
    std::string text = cell(name, "%-19s");
    std::vector<uint64_t> numbers = {each.all(), each.wrong, each.equal};
    numbers.insert(numbers.end(), each.refused.begin(), each.refused.end());
    numbers.push_back(each.refusedEqual);
    numbers.push_back(each.refusedEnding);
    for (uint64_t number : numbers)
      text += cell(std::to_string(number).c_str());
    return text + "\n";
  };
  std::string text = cell("mutation", "%-19s");
  std::vector<const char *> heads = {"mutants", "wrong", "equal"};
  heads.insert(heads.end(), std::begin(kRuleNames), std::end(kRuleNames));
  heads.insert(heads.end(), {"needless", "ending"});
  for (const char *head : heads)
    text += cell(head);
  text += "\n";
  for (size_t k = 0; k < mutations().size(); ++k)
    text += line(mutations()[k].name, counts[k]);
  text += line("several", counts.back());
  return text + line("all", total());
}
