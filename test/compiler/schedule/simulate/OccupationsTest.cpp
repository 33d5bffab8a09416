//===- OccupationsTest.cpp - The times that messages occupy workers -------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/model/Recompute.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "compiler/schedule/timeline/Timeline.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

namespace chimera::schedule {
namespace {

/// One line per worker, with its occupations: "send activation 0 to P1 2-3".
std::string describeAll(const Case &c) {
  Timing timing = simulate(c.problem, c.schedule);
  Occupations all = messageOccupationsOf(c.problem, c.schedule, timing);
  Timeline timeline{"p", "title", c.problem, c.schedule, timing};
  std::string text;
  for (size_t w = 0; w < all.size(); ++w)
    for (const Occupation &one : all[w])
      text += "P" + std::to_string(w) + ": " +
              describe(timeline, c.schedule.workers[w][one.index], one) + " " +
              std::to_string(one.begin) + "-" + std::to_string(one.end) + "\n";
  return text;
}

/// The case of SimulateTest's OccupiesWorkersWithMessages.
///
///   P0  0-2 F 2-3 send                                17-19 receive 19-22 B
///   P1           6-8 receive 8-10 F 10-13 B 13-14 send
TEST(Occupations, AreAfterTheSenderAndBeforeTheReceiver) {
  Case c = makeCase("gpipe", 2, 1, {2, 3, 1, 1});
  c.problem.link.alpha = 3;
  c.problem.link.send.alpha = 1;
  c.problem.link.receive.alpha = 2;
  EXPECT_EQ(describeAll(c), "P0: send activation 0 to P1 2-3\n"
                            "P0: receive gradient 0 from P1 17-19\n"
                            "P1: receive activation 0 from P0 6-8\n"
                            "P1: send gradient 0 to P0 13-14\n");
  c.problem.link.receive.alpha = 0;
  EXPECT_EQ(describeAll(c), "P0: send activation 0 to P1 2-3\n"
                            "P1: send gradient 0 to P0 11-12\n");
  c.problem.link.send.alpha = 0;
  EXPECT_EQ(describeAll(c), "");
}

/// If a recompute waits for a gradient, the recompute receives it, not the
/// backward. A weight gradient neither sends nor receives.
TEST(Occupations, AreOfTheActionThatAwaitsTheMessage) {
  Case c = makeCase("gpipe", 2, 1, {2, 3, 1, 1, 2}, true);
  c.problem.recompute.assign(2, Recompute::Fused);
  c.schedule = insertRecompute(c.problem, c.schedule);
  c.problem.link.receive.alpha = 2;
  EXPECT_EQ(describeAll(c), "P0: receive gradient 0 from P1 9-11\n"
                            "P1: receive activation 0 from P0 2-4\n");
}

/// If a worker has both stages, there are no messages.
TEST(Occupations, AreNoneInsideAWorker) {
  Case c = makeCase("gpipe", 1, 3);
  c.problem.link.send.alpha = c.problem.link.receive.alpha = 2;
  EXPECT_EQ(describeAll(c), "");
}

/// P0 and P1 are on one node, so their messages use the links inside the node.
/// P2 is on another node.
TEST(Occupations, AreOfTheLinkBetweenTheWorkers) {
  Case c = makeCase("gpipe", 3, 1, {2, 3, 1, 1});
  c.problem.link.send.alpha = 5;
  c.problem.node.emplace();
  c.problem.node->devices = 2;
  c.problem.node->links.link.send.alpha = 1;
  EXPECT_EQ(describeAll(c), "P0: send activation 0 to P1 2-3\n"
                            "P1: send activation 0 to P2 5-10\n"
                            "P1: send gradient 0 to P0 23-24\n"
                            "P2: send gradient 0 to P1 15-20\n");
}

/// messageOccupationsOf uses only the starts of actions. For all schemes, its
/// occupations add up to the simulator's totals, and do not overlap with
/// actions.
TEST(Occupations, EqualTheCountOfTheSimulator) {
  for (const Scheme &scheme : schemes())
    for (const Choice &choice : choices(scheme, 4))
      for (bool split : {false, true}) {
        if (!canPlan(scheme, 4, 8, choice))
          continue;
        SCOPED_TRACE(nameOf(scheme, 4, 8, choice));
        Case c = makeCase(scheme.name, 4, 8, {12, 24, 12, 12}, split, choice);
        c.problem.bytes.assign(c.problem.stages.size(), {1, 1, 1, 1, 64});
        c.problem.link = {{3}, {1, 2, 64}, {0, 5, 64}};
        if (split) {
          c.problem.node.emplace();
          c.problem.node->devices = 2;
          c.problem.node->links.link = {{1}, {0, 1, 64}, {1}};
        }
        Timing timing = simulate(c.problem, c.schedule);
        Occupations all = messageOccupationsOf(c.problem, c.schedule, timing);
        EXPECT_EQ(totalsOf(all), timing.occupied);
        for (size_t w = 0; w < all.size(); ++w) {
          std::vector<std::pair<int64_t, int64_t>> spans;
          for (const Occupation &one : all[w])
            spans.push_back({one.begin, one.end});
          for (size_t i = 0; i < timing.starts[w].size(); ++i) {
            int64_t start = timing.starts[w][i];
            spans.push_back(
                {start, start + c.problem.cost(c.schedule.workers[w][i])});
          }
          std::ranges::sort(spans);
          for (size_t i = 1; i < spans.size(); ++i)
            EXPECT_LE(spans[i - 1].second, spans[i].first);
          EXPECT_LE(spans.back().second, timing.makespan);
        }
      }
}

} // namespace
} // namespace chimera::schedule
