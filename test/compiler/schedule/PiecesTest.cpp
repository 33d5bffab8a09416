//===- PiecesTest.cpp - Ranges and parts of micro-batches -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/simulate/Memory.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "compiler/schedule/timeline/Timeline.h"
#include "test/compiler/schedule/Grids.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace chimera::schedule {
namespace {

Case doubling(int32_t d, int32_t n, StageCost cost = {1, 2, 1, 1}) {
  return makeCase("chimera", d, n, cost, false,
                  chimeraWith(2, Concatenation::Doubling));
}
Case halving(int32_t d, int32_t n, StageCost cost = {1, 2, 1, 1}) {
  return makeCase("chimera", d, n, cost, false,
                  chimeraWith(2, Concatenation::Halving));
}

/// Li and Hoefler, Figure 7c.
TEST(Pieces, DoublingHasTheSlotsOfThePaper) {
  Case c = doubling(4, 8);
  EXPECT_EQ(cellsOf(gridOf(c, slotTiming(c.problem, c.schedule), true)),
            cellsOf(R"(
slot 0    1    2    3    4    5    6    7    8    9    10   11   12   13
P0   F01  .    F45  f23  b2   f67  b3   B0   b6   B1   b7   B4   .    B5
P1   .    F01  f23  F45  f67  b2   B0   b3   B1   b6   B4   b7   B5   .
P2   .    f23  F01  f67  F45  B0   b2   B1   b3   B4   b6   B5   b7   .
P3   f23  .    f67  F01  B0   F45  B1   b2   B4   b3   B5   b6   .    b7
)"));
  EXPECT_EQ(simulate(c.problem, c.schedule).makespan, 28);
}

/// Halving has the slots of doubling. Each slot has one micro-batch where
/// doubling has two, and half a backward where doubling has a whole one.
TEST(Pieces, HalvingHasTheSlotsOfDoubling) {
  Case c = halving(4, 4);
  EXPECT_EQ(cellsOf(gridOf(c, slotTiming(c.problem, c.schedule), true)),
            cellsOf(R"(
slot 0    1    2    3    4    5    6    7    8    9    10   11   12   13
P0   F0   .    F2   f1   b1a  f3   b1b  B0a  b3a  B0b  b3b  B2a  .    B2b
P1   .    F0   f1   F2   f3   b1a  B0a  b1b  B0b  b3a  B2a  b3b  B2b  .
P2   .    f1   F0   f3   F2   B0a  b1a  B0b  b1b  B2a  b3a  B2b  b3b  .
P3   f1   .    f3   F0   B0a  F2   B0b  b1a  B2a  b1b  B2b  b3a  .    b3b
)"));
  EXPECT_EQ(simulate(c.problem, c.schedule).makespan, 14);
}

/// With halving, D=8 and N=8, the worker that holds the fewest micro-batches
/// holds 7 (with direct concatenation 5). The worker that holds the most holds
/// 8.
TEST(Pieces, HalvingHoldsNoMoreThanDirect) {
  Case c = halving(8, 8);
  Timing timing = simulate(c.problem, c.schedule);
  auto [least, most] = std::ranges::minmax(timing.peakActivations);
  EXPECT_EQ(least, 7);
  EXPECT_EQ(most, 8);
}

TEST(Pieces, TakeTheirShareOfTheTime) {
  Case c = doubling(4, 8, {3, 5, 1, 1});
  EXPECT_EQ(c.problem.cost({Kind::Forward, 0, 0, 0, 2}), 6);
  EXPECT_EQ(c.problem.cost({Kind::Backward, 0, 0, 0}), 5);
  EXPECT_EQ(c.problem.cost({Kind::Backward, 0, 0, 0, 1, 0, 2}), 2);
  EXPECT_EQ(c.problem.cost({Kind::Backward, 0, 0, 0, 1, 1, 2}), 3);
  for (int32_t parts : {1, 2, 3, 7, 255})
    for (int64_t whole :
         {int64_t{255}, int64_t{1000}, (int64_t{1} << 62) - 1}) {
      int64_t sum = 0;
      for (int32_t part = 0; part < parts; ++part) {
        EXPECT_GE(sizeOfPart(whole, part, parts), whole / parts);
        EXPECT_LE(sizeOfPart(whole, part, parts), whole / parts + 1);
        sum += sizeOfPart(whole, part, parts);
      }
      EXPECT_EQ(sum, whole);
    }
}

/// A forward over two micro-batches sends one message with the boundaries of
/// both. Half a backward sends half a message.
TEST(Pieces, HaveMessagesOfTheirSize) {
  Case c = doubling(2, 4);
  c.problem.link = {10, 1, 2};
  c.problem.bytes.assign(2, {0, 0, 0, 0, 7});
  EXPECT_EQ(c.problem.messageTime(c.problem.link, 0), 14);
  EXPECT_EQ(
      c.problem.messageTime(c.problem.link, 0, {Kind::Forward, 0, 0, 0, 2}),
      17);
  EXPECT_EQ(c.problem.messageTime(c.problem.link, 0,
                                  {Kind::Backward, 0, 0, 0, 1, 0, 2}),
            12);
  EXPECT_EQ(c.problem.messageTime(c.problem.link, 0,
                                  {Kind::Backward, 0, 0, 0, 1, 1, 2}),
            12);
}

/// With halving and D=2, N=2, worker 0 runs F0 f1a …. Each half of a backward
/// frees half of the micro-batch's bytes. After the second half, the
/// micro-batch is no longer in flight.
TEST(Pieces, FreeTheirShareOfTheBytes) {
  Case c = halving(2, 2);
  c.problem.bytes.assign(2, {0, 0, 10, 10, 0});
  std::vector<Action> order = {
      {Kind::Forward, 0, 0, 0},           {Kind::Backward, 0, 0, 0, 1, 0, 2},
      {Kind::Forward, 1, 1, 1},           {Kind::Backward, 0, 0, 0, 1, 1, 2},
      {Kind::Backward, 1, 1, 1, 1, 0, 2}, {Kind::Backward, 1, 1, 1, 1, 1, 2}};
  MemoryPeak peak = MemoryPeaks(c.problem).peakOf(order, 0);
  EXPECT_EQ(peak.bytes, 15);
  EXPECT_EQ(peak.activations, 2);
}

TEST(Pieces, AreDescribedInFull) {
  EXPECT_EQ(describe({Kind::Forward, 1, 2, 4, 2}),
            "forward of pipeline 1, stage 2, micro-batches 4 to 5");
  EXPECT_EQ(describe({Kind::Backward, 1, 2, 4, 1, 1, 2}),
            "backward of pipeline 1, stage 2, micro-batch 4, part 1 of 2");
  // If there is a micro-batch 23, "23" means that one, and the micro-batches 2
  // and 3 are "2-3". Otherwise "23" means 2 and 3.
  const Case ofTen = doubling(2, 10), ofTwelve = doubling(2, 12);
  const Timing timing;
  Timeline ten{"p", "title", ofTen.problem, ofTen.schedule, timing};
  Timeline twelve{"p", "title", ofTwelve.problem, ofTwelve.schedule, timing};
  EXPECT_EQ(microBatchText(ten, {Kind::Forward, 0, 0, 8, 2}), "89");
  EXPECT_EQ(microBatchText(twelve, {Kind::Forward, 0, 0, 8, 2}), "8-9");
  EXPECT_EQ(microBatchText(ten, {Kind::Forward, 0, 0, 0, 3}), "0-2");
  EXPECT_EQ(microBatchText(twelve, {Kind::Backward, 0, 0, 12, 1, 1, 2}), "12b");
  EXPECT_EQ(microBatchText(ten, {Kind::Backward, 0, 0, 3, 1, 27, 30}), "3.27");
}

/// An action of the problem has no number if it covers only the second
/// micro-batch of a pair, or a whole backward that is cut into parts, or a part
/// of a backward that is not cut.
TEST(Pieces, OfAnotherSizeAreUnknown) {
  Case c = doubling(4, 8);
  ActionIds ids(c.problem);
  EXPECT_TRUE(ids.find({Kind::Forward, 0, 0, 0, 2}));
  EXPECT_FALSE(ids.find({Kind::Forward, 0, 0, 0, 1}));
  EXPECT_FALSE(ids.find({Kind::Forward, 0, 0, 1, 2}));
  EXPECT_FALSE(ids.find({Kind::Backward, 0, 0, 0, 2}));
  EXPECT_FALSE(ids.find({Kind::Backward, 0, 0, 0, 1, 0, 2}));
  EXPECT_FALSE(ids.find({Kind::Recompute, 0, 0, 0}));
  c = halving(4, 4);
  ActionIds halves(c.problem);
  EXPECT_TRUE(halves.find({Kind::Backward, 0, 0, 0, 1, 1, 2}));
  EXPECT_FALSE(halves.find({Kind::Backward, 0, 0, 0, 1, 2, 2}));
  EXPECT_FALSE(halves.find({Kind::Backward, 0, 0, 0}));
  EXPECT_FALSE(halves.find({Kind::Forward, 0, 0, 0, 1, 0, 2}));
}

TEST(Pieces, AreNumberedOnce) {
  for (Concatenation concatenation : kConcatenations)
    for (bool split : {false, true})
      for (bool again : {false, true}) {
        Case c = makeCase("chimera", 4, 7, {2, 4, 2, 2, 2}, split,
                          chimeraWith(2, concatenation));
        if (again)
          c.problem.recompute = {Recompute::Early, Recompute::None,
                                 Recompute::Fused, Recompute::Early};
        ActionIds ids(c.problem);
        int64_t optional = 0, actions = 0;
        for (int64_t id = 0; id < ids.count(); ++id) {
          if (!ids.has(id))
            continue;
          EXPECT_EQ(ids.find(ids.action(id)), id);
          EXPECT_EQ(ids.idOf(ids.action(id)), id);
          ++actions;
          optional += ids.isOptional(id);
        }
        EXPECT_EQ(actions - optional, ids.required());
        int64_t parts = concatenation == Concatenation::Halving ? 2 : 1;
        EXPECT_EQ(optional, again ? 2 * 7 * parts : 0);
      }
}

/// A violation names the micro-batches or the part that its action covers.
TEST(Pieces, AreNamedInViolations) {
  Case c = doubling(2, 4);
  std::swap(c.schedule.workers[0].front(), c.schedule.workers[0].back());
  c.schedule.slots.clear();
  std::string text = violationText(verify(c.problem, c.schedule));
  EXPECT_NE(
      text.find("micro-batch 1 must come after the forward that it depends on"),
      std::string::npos)
      << text;
  c = halving(2, 2);
  c.schedule.workers[0].pop_back();
  c.schedule.slots.clear();
  EXPECT_EQ(violationText(verify(c.problem, c.schedule)),
            "backward of pipeline 0, stage 0, micro-batch 0, part 1 of 2 is "
            "missing\n");
  c = doubling(2, 4);
  c.schedule.workers[0].erase(c.schedule.workers[0].begin());
  c.schedule.slots.clear();
  EXPECT_EQ(violationText(verify(c.problem, c.schedule)),
            "forward of pipeline 0, stage 0, micro-batches 0 to 1 is "
            "missing\n");
}

TEST(Pieces, HaveToFit) {
  Case c = doubling(2, 4);
  c.problem.pipelines[0].forwards = {2, 1};
  EXPECT_NE(check(c.problem), "");
  c.problem.pipelines[0].forwards = {0, 2};
  EXPECT_EQ(check(c.problem), "expected forwards of pipeline 0 over 1 to 65535 "
                              "micro-batches, got 0");
  c.problem.pipelines[0].forwards = {65536};
  EXPECT_EQ(check(c.problem), "expected forwards of pipeline 0 over 1 to 65535 "
                              "micro-batches, got 65536");
  c = makeCase("chimera", 2, 4, {}, false, chimeraWith(2));
  c.problem.pipelines[0].forwards = {2};
  EXPECT_EQ(check(c.problem), "expected each forward of pipeline 0 to cover "
                              "consecutive micro-batches, got 0 and 2");
  c = halving(2, 2, {1, 2, 1, 1});
  c.problem.stages[1].backward = 1;
  EXPECT_EQ(check(c.problem), "expected costs of at least 2 on stage 1, "
                              "because its backwards have 2 parts, got 1");
  c.problem.pipelines[0].backwardParts = 0;
  EXPECT_EQ(check(c.problem),
            "expected backwards of pipeline 0 in 1 to 255 parts, got 0");
  c.problem.pipelines[0].backwardParts = 256;
  EXPECT_EQ(check(c.problem),
            "expected backwards of pipeline 0 in 1 to 255 parts, got 256");
  // If a backward is cut into two parts, so are its recompute and its two
  // gradients.
  for (auto [split, again, cost] :
       {std::tuple{false, true, StageCost{1, 2, 1, 1, 1}},
        {true, false, {1, 1, 1, 2, 1}},
        {true, false, {1, 1, 2, 1, 1}}}) {
    c = halving(2, 2);
    c.problem.splits = split;
    if (again)
      c.problem.recompute = {Recompute::None, Recompute::Early};
    c.problem.stages = {{1, 2, 2, 2, again ? 1 : 2}, cost};
    EXPECT_EQ(check(c.problem), "expected costs of at least 2 on stage 1, "
                                "because its backwards have 2 parts, got 1");
  }
  c = halving(2, 2);
  c.problem.recompute = {Recompute::Early};
  EXPECT_EQ(check(c.problem),
            "expected recomputation for all 2 stages or for none, got 1");
}

} // namespace
} // namespace chimera::schedule
