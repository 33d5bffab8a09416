//===- ChromeTraceTest.cpp - Traces ---------------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/ChromeTrace.h"

#include "compiler/schedule/Recompute.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace chimera::schedule {
namespace {

using nlohmann::json;

json trace(const Case &c, const TimeUnit &unit = timeUnits().front(),
           bool slots = false) {
  Timing timing = slots ? slotTiming(c.problem, c.schedule)
                        : simulate(c.problem, c.schedule);
  Timeline timeline{"p",    "a \"title\"", c.problem, c.schedule,
                    timing, slots,         &unit};
  return json::parse(renderChromeTrace({&timeline, 1}));
}

std::vector<json> events(const json &document, const std::string &phase) {
  std::vector<json> found;
  for (const json &event : document["traceEvents"])
    if (event["ph"] == phase)
      found.push_back(event);
  return found;
}

TEST(ChromeTrace, HasOneCompleteEventForEachAction) {
  Case c = makeCase("chimera", 4, 4, {1, 2, 1, 1});
  Timing timing = simulate(c.problem, c.schedule);
  std::vector<json> actions = events(trace(c), "X");
  size_t next = 0;
  for (size_t w = 0; w < 4; ++w)
    for (size_t i = 0; i < c.schedule.workers[w].size(); ++i) {
      const Action &action = c.schedule.workers[w][i];
      ASSERT_LT(next, actions.size());
      const json &event = actions[next++];
      EXPECT_EQ(event["tid"], w);
      EXPECT_EQ(event["ts"], timing.starts[w][i]);
      EXPECT_EQ(event["dur"], action.kind == Kind::Forward ? 1 : 2);
      EXPECT_EQ(event["args"], (json{{"worker", w},
                                     {"kind", nameOf(action.kind)},
                                     {"pipeline", action.pipeline},
                                     {"stage", action.stage},
                                     {"micro_batch", action.microBatch}}));
    }
  EXPECT_EQ(next, actions.size());
}

/// Beside them what is a range, a part, and which step of two it is.
TEST(ChromeTrace, SaysWhatAnActionCovers) {
  using How = Concatenation;
  json first = events(trace(makeCase("chimera", 2, 4, {1, 2, 1, 1}, false,
                                     choose(2, How::Doubling))),
                      "X")
                   .front();
  EXPECT_EQ(first["name"], "forward 01");
  EXPECT_EQ(first["args"], (json{{"worker", 0},
                                 {"kind", "forward"},
                                 {"pipeline", 0},
                                 {"stage", 0},
                                 {"micro_batch", 0},
                                 {"micro_batches", 2}}));
  Case halves =
      makeCase("chimera", 2, 2, {1, 2, 1, 1}, false, choose(2, How::Halving));
  json last = events(trace(halves), "X").back();
  EXPECT_EQ(last["name"], "backward 1b");
  EXPECT_EQ(last["args"], (json{{"worker", 1},
                                {"kind", "backward"},
                                {"pipeline", 1},
                                {"stage", 0},
                                {"micro_batch", 1},
                                {"part", 1},
                                {"parts", 2}}));
  Case again = makeCase("pipedream", 1, 2, {1, 2, 1, 1, 1});
  again.problem.recompute = {Recompute::Fused};
  again.schedule = insertRecompute(again.problem, again.schedule);
  std::vector<json> found = events(trace(again), "X");
  ASSERT_EQ(found.size(), 12u);
  EXPECT_EQ(found[7]["args"], (json{{"worker", 0},
                                    {"kind", "recompute"},
                                    {"pipeline", 0},
                                    {"stage", 0},
                                    {"micro_batch", 2},
                                    {"step", 1}}));
}

TEST(ChromeTrace, NamesWorkers) {
  std::vector<json> names;
  for (const json &event : events(trace(makeCase("gpipe", 3, 1)), "M"))
    if (event["name"] == "thread_name")
      names.push_back(event["args"]["name"]);
  EXPECT_EQ(names, (std::vector<json>{"P0", "P1", "P2"}));
}

TEST(ChromeTrace, CountsInMicroseconds) {
  Case c = makeCase("gpipe", 1, 1, {1500, 3000, 1, 1});
  for (const TimeUnit &unit : timeUnits()) {
    json document = trace(c, unit);
    json backward = events(document, "X").at(1);
    EXPECT_DOUBLE_EQ(backward["ts"], 1500 * unit.microseconds) << unit.name;
    EXPECT_DOUBLE_EQ(backward["dur"], 3000 * unit.microseconds) << unit.name;
    EXPECT_TRUE(document["otherData"]["unit"].contains("p"));
  }
}

/// A slot is one unit, whatever the action costs.
TEST(ChromeTrace, ShowsSlots) {
  Case c = makeCase("chimera", 4, 4, {5, 7, 1, 1});
  json document = trace(c, timeUnits().front(), true);
  for (const json &event : events(document, "X"))
    EXPECT_EQ(event["dur"], 1);
  EXPECT_EQ(document["otherData"]["unit"]["p"], "one slot is shown as 1 us");
}

} // namespace
} // namespace chimera::schedule
