//===- BrokenTest.cpp - Broken schedules, all violations ----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Recompute.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace chimera::schedule {
namespace {

/// A sound schedule, what is done to it, and all that is then wrong: the name
/// of the constraint and the message. F0.1 stands for "forward of pipeline
/// <the micro-batch's>, stage 0, micro-batch 1", likewise B, I, W and R; F0.0-1
/// is one over two micro-batches, B0.1a the first half of one.
struct Broken {
  const char *name;
  Case (*make)();
  std::vector<std::string> expected;
};

std::ostream &operator<<(std::ostream &os, const Broken &broken) {
  return os << broken.name;
}

Case line() { return makeCase("gpipe", 2, 2); }
Case chimera() { return makeCase("chimera", 4, 4); }

/// Stages 0 and 3 on worker 0, 1 and 2 on worker 1; one micro-batch.
Case folded() {
  Case c = makeCase("gpipe", 4, 1);
  c.problem.workers = 2;
  c.problem.pipelines[0].workers = {0, 1, 1, 0};
  c.schedule.workers = {{{Kind::Forward, 0, 0, 0},
                         {Kind::Forward, 0, 3, 0},
                         {Kind::Backward, 0, 3, 0},
                         {Kind::Backward, 0, 0, 0}},
                        {{Kind::Forward, 0, 1, 0},
                         {Kind::Forward, 0, 2, 0},
                         {Kind::Backward, 0, 2, 0},
                         {Kind::Backward, 0, 1, 0}}};
  return c;
}

Case pairs() {
  return makeCase("chimera", 2, 4, {1, 2, 1, 1}, false,
                  choose(2, Concatenation::Doubling));
}
Case halves() {
  return makeCase("chimera", 2, 2, {1, 2, 1, 1}, false,
                  choose(2, Concatenation::Halving));
}
Case again(Recompute how) {
  Case c = line();
  c.problem.recompute.assign(2, how);
  c.schedule = insertRecompute(c.problem, c.schedule);
  return c;
}
Case endless() { return makeCase("pipedream", 2, 2); }

/// "forward of pipeline 0, stage 0, micro-batch 1" to "F0.1".
std::string shorten(std::string text) {
  const std::pair<const char *, const char *> kinds[] = {
      {"weight_gradient of pipeline ", "W"},
      {"input_gradient of pipeline ", "I"},
      {"recompute of pipeline ", "R"},
      {"forward of pipeline ", "F"},
      {"backward of pipeline ", "B"}};
  for (auto [longName, letter] : kinds)
    for (size_t at; (at = text.find(longName)) != std::string::npos;) {
      size_t stage = text.find(", stage ", at);
      size_t batch = text.find(", micro-batch", at);
      bool several = text.compare(batch, 15, ", micro-batches") == 0;
      if (several)
        text.replace(text.find(" to ", batch), 4, "-");
      text.replace(batch, several ? 16 : 14, ".");
      text.replace(at, stage + 8 - at, letter);
    }
  for (auto [part, letter] :
       {std::pair{", part 0 of 2", "a"}, {", part 1 of 2", "b"}})
    for (size_t at; (at = text.find(part)) != std::string::npos;)
      text.replace(at, 13, letter);
  return text;
}

std::vector<std::string> found(const Case &c) {
  std::vector<std::string> result;
  for (const Violation &violation : verify(c.problem, c.schedule))
    result.push_back(std::string(nameOf(violation.constraint)) + ": " +
                     shorten(violation.message));
  return result;
}

const Broken kBroken[] = {
    {"NothingAtAll",
     [] {
       Case c = line();
       for (auto &row : c.schedule.workers)
         row.clear();
       return c;
     },
     {"missing: F0.0 is missing", "missing: B0.0 is missing",
      "missing: F0.1 is missing", "missing: B0.1 is missing",
      "missing: F1.0 is missing", "missing: B1.0 is missing",
      "missing: F1.1 is missing", "missing: B1.1 is missing"}},
    {"NoWorkers",
     [] {
       Case c = makeCase("gpipe", 2, 1);
       c.schedule.workers.clear();
       return c;
     },
     {"placement: expected orders for 2 workers, got 0",
      "missing: F0.0 is missing", "missing: B0.0 is missing",
      "missing: F1.0 is missing", "missing: B1.0 is missing"}},
    {"AWorkerTooMany",
     [] {
       Case c = line();
       c.schedule.workers.push_back({{Kind::Forward, 0, 0, 0}});
       return c;
     },
     {"placement: expected orders for 2 workers, got 3",
      "placement: worker 2: F0.0 belongs on worker 0",
      "duplicate: worker 2: F0.0 stands twice"}},
    {"OneMissing",
     [] {
       Case c = line();
       c.schedule.workers[1].pop_back();
       return c;
     },
     {"missing: B1.1 is missing"}},
    {"AMissingForward",
     [] {
       Case c = line();
       c.schedule.workers[0].erase(c.schedule.workers[0].begin());
       return c;
     },
     {"missing: F0.0 is missing"}},
    {"OneTwice",
     [] {
       Case c = line();
       c.schedule.workers[0].push_back({Kind::Forward, 0, 0, 1});
       return c;
     },
     {"duplicate: worker 0: F0.1 stands twice"}},
    {"TwiceOnTwoWorkers",
     [] {
       Case c = line();
       c.schedule.workers[1].push_back({Kind::Forward, 0, 0, 1});
       return c;
     },
     {"placement: worker 1: F0.1 belongs on worker 0",
      "duplicate: worker 1: F0.1 stands twice"}},
    {"OneForAnother",
     [] {
       Case c = line();
       c.schedule.workers[0][0].microBatch = 1;
       return c;
     },
     {"duplicate: worker 0: F0.1 stands twice", "missing: F0.0 is missing"}},
    {"UnknownStagesAndBatches",
     [] {
       Case c = line();
       for (Action action :
            {Action{Kind::Forward, 0, 2, 0}, Action{Kind::Backward, 0, 0, 2},
             Action{Kind::Forward, 1, 0, 0}, Action{Kind::Backward, 0, -1, -1}})
         c.schedule.workers[1].push_back(action);
       return c;
     },
     {"unknown-action: worker 1: F2.0 is no action of the problem",
      "unknown-action: worker 1: B0.2 is no action of the problem",
      "unknown-action: worker 1: F0.0 is no action of the problem",
      "unknown-action: worker 1: B-1.-1 is no action of the problem"}},
    {"SplitWhereWhole",
     [] {
       Case c = makeCase("gpipe", 1, 1);
       c.schedule = splitBackwards(c.schedule);
       return c;
     },
     {"unknown-action: worker 0: I0.0 is no action of the problem",
      "unknown-action: worker 0: W0.0 is no action of the problem",
      "missing: B0.0 is missing"}},
    {"WholeWhereSplit",
     [] {
       Case c = makeCase("gpipe", 1, 1);
       c.problem.splitBackward = true;
       return c;
     },
     {"unknown-action: worker 0: B0.0 is no action of the problem",
      "missing: I0.0 is missing", "missing: W0.0 is missing"}},
    {"WorkersSwapped",
     [] {
       Case c = makeCase("gpipe", 2, 1);
       std::swap(c.schedule.workers[0], c.schedule.workers[1]);
       return c;
     },
     {"placement: worker 0: F1.0 belongs on worker 1",
      "placement: worker 0: B1.0 belongs on worker 1",
      "placement: worker 1: F0.0 belongs on worker 0",
      "placement: worker 1: B0.0 belongs on worker 0"}},
    {"BackwardsFirst",
     [] {
       Case c = line();
       std::reverse(c.schedule.workers[1].begin(), c.schedule.workers[1].end());
       return c;
     },
     {"order: worker 1: B1.1 stands before the forward it needs",
      "order: worker 1: B1.0 stands before the forward it needs"}},
    {"WeightGradientsFirst",
     [] {
       Case c = makeCase("gpipe", 1, 2, {}, true);
       std::reverse(c.schedule.workers[0].begin(), c.schedule.workers[0].end());
       return c;
     },
     {"order: worker 0: W0.1 stands before the input_gradient it needs",
      "order: worker 0: I0.1 stands before the forward it needs",
      "order: worker 0: W0.0 stands before the input_gradient it needs",
      "order: worker 0: I0.0 stands before the forward it needs"}},
    {"StagesOfOneWorkerSwapped",
     [] {
       Case c = folded();
       std::swap(c.schedule.workers[1][0], c.schedule.workers[1][1]);
       return c;
     },
     {"order: worker 1: F2.0 stands before the forward of stage 1 it needs"}},
    {"AWayRoundTheOtherWorker",
     [] {
       Case c = folded();
       std::swap(c.schedule.workers[0][0], c.schedule.workers[0][1]);
       return c;
     },
     {"deadlock: worker 0 never gets to F3.0: it needs F2.0, which worker 1 "
      "never gets to",
      "deadlock: worker 1 never gets to F1.0: it needs F0.0, which worker 0 "
      "never gets to"}},
    {"TwoWait",
     [] {
       Case c = line();
       std::swap(c.schedule.workers[0][1], c.schedule.workers[0][2]);
       return c;
     },
     {"deadlock: worker 0 never gets to B0.0: it needs B1.0, which worker 1 "
      "never gets to",
      "deadlock: worker 1 never gets to F1.1: it needs F0.1, which worker 0 "
      "never gets to"}},
    {"AllWaitAndOneIsMissing",
     [] {
       Case c = line();
       std::swap(c.schedule.workers[0][1], c.schedule.workers[0][2]);
       c.schedule.workers[1].pop_back();
       return c;
     },
     {"missing: B1.1 is missing",
      "deadlock: worker 0 never gets to B0.0: it needs B1.0, which worker 1 "
      "never gets to",
      "deadlock: worker 1 never gets to F1.1: it needs F0.1, which worker 0 "
      "never gets to"}},
    {"SlotsOutOfOrder",
     [] {
       Case c = makeCase("chimera", 2, 2);
       c.schedule.slots = {{0, 1, 1, 3}, {4, 5, 6, 6}};
       return c;
     },
     {"slots: F1.1 in slot 1 needs F0.1 in slot 4",
      "slots: worker 0: expected a slot after that of the action before, got "
      "slot 1 for B1.1",
      "slots: B0.0 in slot 3 needs B1.0 in slot 6",
      "slots: worker 1: expected a slot after that of the action before, got "
      "slot 6 for B0.1"}},
    {"TooMuchMemoryAndTooLittleOrder",
     [] {
       Case c = line();
       c.problem.bytes = {{1, 0, 10, 0}, {1, 0, 10, 0}};
       c.problem.memoryCaps = {21, 12};
       std::swap(c.schedule.workers[1][1], c.schedule.workers[1][2]);
       std::swap(c.schedule.workers[1][0], c.schedule.workers[1][1]);
       return c;
     },
     {"order: worker 1: B1.0 stands before the forward it needs",
      "memory: worker 0 holds 22 bytes at F0.1, more than its cap of 21"}},
    {"RepeatsAndUnknownOnesHoldNoMemory",
     [] {
       Case c = line();
       c.problem.bytes = {{1, 0, 10, 0}, {1, 0, 10, 0}};
       c.problem.memoryCaps = {22, 22};
       c.schedule.workers[0].insert(c.schedule.workers[0].begin() + 1, 2,
                                    {Kind::Forward, 0, 0, 0});
       c.schedule.workers[1].insert(c.schedule.workers[1].begin(), 2,
                                    {Kind::Forward, 0, 1, 7});
       return c;
     },
     {"duplicate: worker 0: F0.0 stands twice",
      "duplicate: worker 0: F0.0 stands twice",
      "unknown-action: worker 1: F1.7 is no action of the problem",
      "unknown-action: worker 1: F1.7 is no action of the problem"}},
    {"TwoHalvesOfOneBackwardForAnother",
     [] {
       Case c = halves();
       c.schedule.slots.clear();
       for (auto &row : c.schedule.workers)
         for (Action &action : row)
           if (action.kind == Kind::Backward && action.microBatch == 1 &&
               action.part == 1)
             action.part = 2;
       return c;
     },
     {"unknown-action: worker 0: B1.1, part 2 of 2 is no action of the problem",
      "unknown-action: worker 1: B0.1, part 2 of 2 is no action of the problem",
      "missing: B0.1b is missing", "missing: B1.1b is missing"}},
    {"HalvesMayComeInAnyOrder",
     [] {
       Case c = halves();
       c.schedule.slots.clear();
       for (Action &action : c.schedule.workers[1])
         if (action.kind == Kind::Backward && action.microBatch == 0)
           action.part = 1 - action.part;
       return c;
     },
     {}},
    {"APairApart",
     [] {
       Case c = pairs();
       c.schedule.slots.clear();
       Action &pair = c.schedule.workers[0][0];
       pair.microBatches = 1;
       return c;
     },
     {"unknown-action: worker 0: F0.0 is no action of the problem",
      "missing: F0.0-1 is missing"}},
    {"APairMissingAndAPairTwice",
     [] {
       Case c = pairs();
       c.schedule.slots.clear();
       c.schedule.workers[1][0] = c.schedule.workers[0][0];
       return c;
     },
     {"placement: worker 1: F0.0-1 belongs on worker 0",
      "duplicate: worker 1: F0.0-1 stands twice",
      "missing: F0.2-3 is missing"}},
    {"APairBehindItsBackwards",
     [] {
       Case c = pairs();
       c.schedule.slots.clear();
       auto &row = c.schedule.workers[0];
       std::rotate(row.begin(), row.begin() + 1, row.end());
       return c;
     },
     {"order: worker 0: B0.0 stands before the forward it needs",
      "order: worker 0: B0.1 stands before the forward it needs",
      "deadlock: worker 0 never gets to B0.0: it needs B1.0, which worker 1 "
      "never gets to",
      "deadlock: worker 1 never gets to F1.0-1: it needs F0.0-1, which worker "
      "0 never gets to"}},
    {"HalvesMixedUp",
     [] {
       Case c = halves();
       c.schedule.slots.clear();
       for (Action &action : c.schedule.workers[0])
         if (action.kind == Kind::Backward && action.microBatch == 0)
           action.part = 1;
       return c;
     },
     {"duplicate: worker 0: B0.0b stands twice", "missing: B0.0a is missing"}},
    {"AWholeForItsHalves",
     [] {
       Case c = halves();
       c.schedule.slots.clear();
       Action &half = c.schedule.workers[0].back();
       half.part = 0;
       half.parts = 1;
       return c;
     },
     {"unknown-action: worker 0: B0.0 is no action of the problem",
      "missing: B0.0b is missing"}},
    {"ARecomputeThatNobodyAskedFor",
     [] {
       Case c = line();
       c.schedule.workers[0].insert(c.schedule.workers[0].begin() + 2,
                                    {Kind::Recompute, 0, 0, 0});
       return c;
     },
     {"unknown-action: worker 0: R0.0 is no action of the problem"}},
    {"AFusedRecomputeMissing",
     [] {
       Case c = again(Recompute::Fused);
       c.schedule.workers[0].erase(c.schedule.workers[0].begin() + 2);
       return c;
     },
     {"missing: R0.0 is missing"}},
    {"AnEarlyRecomputeMayBeMissing",
     [] {
       Case c = again(Recompute::Early);
       c.schedule.workers[0].erase(c.schedule.workers[0].begin() + 2);
       return c;
     },
     {}},
    {"AnEarlyRecomputeAndItsBackwardMissing",
     [] {
       Case c = again(Recompute::Early);
       auto &row = c.schedule.workers[0];
       row.erase(row.begin() + 2, row.begin() + 4);
       return c;
     },
     {"missing: B0.0 is missing"}},
    {"ARecomputeOfAnotherStage",
     [] {
       Case c = again(Recompute::Early);
       c.problem.recompute[0] = Recompute::None;
       return c;
     },
     {"unknown-action: worker 0: R0.0 is no action of the problem",
      "unknown-action: worker 0: R0.1 is no action of the problem"}},
    {"ARecomputeTwice",
     [] {
       Case c = again(Recompute::Early);
       c.schedule.workers[0].push_back({Kind::Recompute, 0, 0, 0});
       return c;
     },
     {"duplicate: worker 0: R0.0 stands twice"}},
    {"ARecomputeBehindItsBackward",
     [] {
       Case c = again(Recompute::Early);
       std::swap(c.schedule.workers[1][2], c.schedule.workers[1][3]);
       return c;
     },
     {"order: worker 1: B1.0 stands before the recompute it needs"}},
    {"ARecomputeBeforeItsForward",
     [] {
       Case c = again(Recompute::Early);
       auto &row = c.schedule.workers[1];
       std::rotate(row.begin(), row.begin() + 2, row.begin() + 3);
       return c;
     },
     {"order: worker 1: R1.0 stands before the forward it needs"}},
    {"AFusedRecomputeThatWaitsForItsGradient",
     [] {
       Case c = again(Recompute::Fused);
       auto &row = c.schedule.workers[0];
       std::rotate(row.begin() + 1, row.begin() + 2, row.begin() + 3);
       return c;
     },
     {"deadlock: worker 0 never gets to R0.0: it needs B1.0, which worker 1 "
      "never gets to",
      "deadlock: worker 1 never gets to F1.1: it needs F0.1, which worker 0 "
      "never gets to"}},
    {"NoBodies",
     [] {
       Case c = endless();
       c.schedule.bodies.clear();
       return c;
     },
     {"period: expected a body in the order of each worker"}},
    {"ABodyTooShort",
     [] {
       Case c = endless();
       --c.schedule.bodies[1].end;
       return c;
     },
     {"period: expected the body to run B1.1 or 3, got neither",
      "period: worker 0: B0.1 stands in a section before that of B1.1, which "
      "it needs"}},
    {"AForwardTooEarlyForItsWeights",
     [] {
       Case c = endless();
       std::swap(c.schedule.workers[1][1], c.schedule.workers[1][2]);
       return c;
     },
     {"versions: worker 1: F1.1 reads the weights after 1 updates, but only 0 "
      "stand before it"}},
    {"UpdatesOutOfOrder",
     [] {
       Case c = endless();
       std::swap(c.schedule.workers[0][6], c.schedule.workers[0][7]);
       return c;
     },
     {"versions: worker 0: expected the update of micro-batch 2 on stage 0 "
      "next, got that of 3",
      "versions: worker 0: expected at most 2 versions of stage 0, got 3 "
      "behind B0.3"}}};

class BrokenSchedule : public testing::TestWithParam<Broken> {};

TEST_P(BrokenSchedule, HasAllItsViolationsReported) {
  Case c = GetParam().make();
  ASSERT_EQ(check(c.problem), "");
  EXPECT_EQ(found(c), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(Verify, BrokenSchedule, testing::ValuesIn(kBroken),
                         [](const auto &info) { return info.param.name; });

/// What the list is made of is sound.
TEST(BrokenSchedules, StartFromSoundOnes) {
  for (const Case &c :
       {line(), chimera(), folded(), pairs(), halves(), again(Recompute::Early),
        again(Recompute::Fused), endless()})
    EXPECT_EQ(messages(verify(c.problem, c.schedule)), "");
  EXPECT_GE(std::size(kBroken), 20u);
}

/// Every constraint is broken somewhere in the list.
TEST(BrokenSchedules, BreakEveryConstraint) {
  using Constraint = Violation::Constraint;
  for (Constraint constraint :
       {Constraint::UnknownAction, Constraint::Missing, Constraint::Duplicate,
        Constraint::Placement, Constraint::Order, Constraint::Deadlock,
        Constraint::Slots, Constraint::Memory, Constraint::Period,
        Constraint::Versions}) {
    bool broken = false;
    for (const Broken &each : kBroken)
      for (const std::string &text : each.expected)
        broken |= text.rfind(std::string(nameOf(constraint)) + ": ", 0) == 0;
    EXPECT_TRUE(broken) << nameOf(constraint);
  }
}

} // namespace
} // namespace chimera::schedule
