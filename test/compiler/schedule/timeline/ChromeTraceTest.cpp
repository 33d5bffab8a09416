//===- ChromeTraceTest.cpp - Traces in Chrome's format --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/ChromeTrace.h"

#include "compiler/schedule/model/Recompute.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <set>

namespace chimera::schedule {
namespace {

using nlohmann::json;

json trace(const Case &c, const TimeScale &scale = {}, bool slots = false) {
  Timing timing = slots ? slotTiming(c.problem, c.schedule)
                        : simulate(c.problem, c.schedule);
  Timeline timeline{"p",    "a \"title\"", c.problem, c.schedule,
                    timing, slots,         scale};
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

/// An event names the micro-batches or the part of a micro-batch that its
/// action covers. If there are two steps, it also names the step.
TEST(ChromeTrace, SaysWhatAnActionCovers) {
  using How = Concatenation;
  json first = events(trace(makeCase("chimera", 2, 4, {1, 2, 1, 1}, false,
                                     chimeraWith(2, How::Doubling))),
                      "X")
                   .front();
  EXPECT_EQ(first["name"], "forward 01");
  EXPECT_EQ(first["args"], (json{{"worker", 0},
                                 {"kind", "forward"},
                                 {"pipeline", 0},
                                 {"stage", 0},
                                 {"micro_batch", 0},
                                 {"micro_batches", 2}}));
  Case halves = makeCase("chimera", 2, 2, {1, 2, 1, 1}, false,
                         chimeraWith(2, How::Halving));
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
    json document = trace(c, {&unit});
    json backward = events(document, "X").at(1);
    EXPECT_DOUBLE_EQ(backward["ts"], 1500 * unit.microseconds) << unit.name;
    EXPECT_DOUBLE_EQ(backward["dur"], 3000 * unit.microseconds) << unit.name;
    EXPECT_TRUE(document["otherData"]["unit"].contains("p"));
  }
}

/// A microsecond has four ticks here.
TEST(ChromeTrace, HasFractionsOfMicroseconds) {
  Case c = makeCase("gpipe", 1, 1, {1, 2, 1, 1});
  json backward = events(trace(c, {findTimeUnit("us"), 4}), "X").at(1);
  EXPECT_EQ(backward["ts"], 0.25);
  EXPECT_EQ(backward["dur"], 0.5);
}

/// A name may have bytes that are not UTF-8.
TEST(ChromeTrace, TakesNamesThatAreNotUtf8) {
  Case c = makeCase("gpipe", 1, 1);
  Timing timing = simulate(c.problem, c.schedule);
  Timeline timeline{"\xff", "\xfe", c.problem, c.schedule, timing};
  json document = json::parse(renderChromeTrace({&timeline, 1}));
  EXPECT_EQ(events(document, "M").front()["args"]["name"], "\uFFFD");
}

/// Each action is shown as one slot of 1 us, whatever it costs.
TEST(ChromeTrace, ShowsSlots) {
  Case c = makeCase("chimera", 4, 4, {5, 7, 1, 1});
  json document = trace(c, {}, true);
  for (const json &event : events(document, "X"))
    EXPECT_EQ(event["dur"], 1);
  EXPECT_EQ(document["otherData"]["unit"]["p"], "one slot is shown as 1 us");
}

/// The name of the action that runs on the event's worker at the time of
/// `event`. Fails if no action runs then.
std::string around(const std::vector<json> &actions, const json &event) {
  for (const json &action : actions)
    if (action["tid"] == event["tid"] && action["ts"] < event["ts"] &&
        event["ts"] < action["ts"].get<double>() + action["dur"].get<double>())
      return "P" + action["tid"].dump() + " " +
             action["name"].get<std::string>();
  return "nothing";
}

/// The arrows of a trace, as text: "action -> action: message".
std::vector<std::string> arrows(const json &document) {
  std::vector<json> actions = events(document, "X");
  std::map<int64_t, json> begins;
  for (const json &event : events(document, "s"))
    EXPECT_TRUE(begins.emplace(event["id"].get<int64_t>(), event).second);
  std::vector<std::string> found;
  for (const json &end : events(document, "f")) {
    const json &begin = begins[end["id"].get<int64_t>()];
    EXPECT_EQ(begin["name"], end["name"]);
    EXPECT_EQ(begin["cat"], end["cat"]);
    EXPECT_EQ(end["bp"], "e");
    EXPECT_EQ(begin["args"]["to"], "P" + end["tid"].dump());
    EXPECT_EQ(end["args"]["from"], "P" + begin["tid"].dump());
    found.push_back(around(actions, begin) + " -> " + around(actions, end) +
                    ": " + end["name"].get<std::string>());
  }
  EXPECT_EQ(found.size(), begins.size());
  return found;
}

/// Each message is one arrow, from the action that sends it to the action that
/// waits for it.
TEST(ChromeTrace, HasAnArrowForEachMessage) {
  EXPECT_EQ(
      arrows(trace(makeCase("1f1b", 2, 1, {1, 2, 1, 1}))),
      (std::vector<std::string>{"P1 backward 0 -> P0 backward 0: gradient 0",
                                "P0 forward 0 -> P1 forward 0: activation 0"}));
  // A split backward sends only its input gradient. The fused recompute waits
  // for the message.
  Case c = makeCase("1f1b", 2, 1, {1, 2, 1, 1}, true);
  c.problem.recompute.assign(2, Recompute::Fused);
  c.schedule = insertRecompute(c.problem, c.schedule);
  EXPECT_EQ(arrows(trace(c)),
            (std::vector<std::string>{
                "P1 input_gradient 0 -> P0 recompute 0: gradient 0",
                "P0 forward 0 -> P1 forward 0: activation 0"}));
  // All choices of chimera for D = 4, with pairs of forwards, parts of
  // backwards, and slots.
  for (const Choice &choice : choices(*findScheme("chimera"), 4)) {
    c = makeCase("chimera", 4, 8, {2, 4, 1, 1}, false, choice);
    size_t sent = 0;
    for (const std::vector<Action> &row : c.schedule.workers)
      for (const Action &action : row)
        sent +=
            action.kind == Kind::Forward ? action.stage < 3 : action.stage > 0;
    EXPECT_EQ(arrows(trace(c)).size(), sent);
    if (c.schedule.hasSlots()) {
      EXPECT_EQ(arrows(trace(c, {}, true)).size(), sent);
    }
  }
  // If both stages are on one worker, nothing is sent.
  EXPECT_TRUE(arrows(trace(makeCase("gpipe", 1, 3))).empty());
}

/// If a document has two timelines, all of their messages have different ids.
TEST(ChromeTrace, GivesMessagesOfTimelinesDifferentIds) {
  Case c = makeCase("1f1b", 3, 4);
  Timing timing = simulate(c.problem, c.schedule);
  Timeline one{"p", "one", c.problem, c.schedule, timing};
  std::vector<Timeline> both(2, one);
  json document = json::parse(renderChromeTrace(both));
  std::set<int64_t> ids;
  for (const json &event : events(document, "s"))
    EXPECT_TRUE(ids.insert(event["id"].get<int64_t>()).second);
  EXPECT_EQ(ids.size(), 2u * 2 * 2 * 4);
}

/// The trace has the bytes over time of each worker, as Memory.h counts them.
TEST(ChromeTrace, HasTheMemoryOfEachWorker) {
  Case c = makeCase("1f1b", 2, 2, {1, 2, 1, 1});
  EXPECT_TRUE(events(trace(c), "C").empty());
  c.problem.bytes = {{10, 5, 100, 100, 1000}, {20, 0, 200, 200, 7777}};
  auto ofWorker = [](const json &document, const std::string &name) {
    std::vector<std::pair<double, int64_t>> samples;
    for (const json &event : events(document, "C"))
      if (event["name"] == name)
        samples.push_back({event["ts"], event["args"]["bytes"]});
    return samples;
  };
  using Samples = std::vector<std::pair<double, int64_t>>;
  // P1 runs F0 at 1-2, B0 at 2-4, F1 at 4-5 and B1 at 5-7. B0 begins a gradient
  // sum, which is never freed.
  EXPECT_EQ(ofWorker(trace(c, {&timeUnits().back()}), "bytes of P1"),
            (Samples{{0, 20},
                     {.001, 1220},
                     {.002, 1240},
                     {.004, 1240},
                     {.005, 1240},
                     {.007, 40}}));
  EXPECT_EQ(ofWorker(trace(c), "bytes of P0").front(),
            (std::pair<double, int64_t>(0, 1115)));
  // With slots, the memory of an action changes at the end of its slot,
  // whatever the action costs.
  c = makeCase("chimera", 2, 2, {5, 7, 1, 1});
  c.problem.bytes.assign(2, {1, 1, 8, 8, 2});
  json document = trace(c, {}, true);
  double last = 0;
  for (const json &event : events(document, "X"))
    last = std::max(last, event["ts"].get<double>() + 1);
  for (const char *name : {"bytes of P0", "bytes of P1"})
    EXPECT_LE(ofWorker(document, name).back().first, last);
}

} // namespace
} // namespace chimera::schedule
