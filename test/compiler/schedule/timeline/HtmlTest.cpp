//===- HtmlTest.cpp - The data in a page of timelines ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// test/tools/html.py tests the page in a browser.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/Html.h"

#include "compiler/schedule/simulate/Simulate.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>

namespace chimera::schedule {
namespace {

using nlohmann::json;

/// The data of a page.
json dataOf(const std::string &page) {
  const std::string tag = "<script type=\"application/json\" id=\"data\">";
  size_t begin = page.find(tag) + tag.size();
  return json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

json onlyTimeline(const Case &c, const std::string &title = "title") {
  Timing timing = simulate(c.problem, c.schedule);
  Timeline timeline{"p", title, c.problem, c.schedule, timing};
  return dataOf(renderHtml({&timeline, 1}))["timelines"][0];
}

/// The cases of all schemes for some numbers of workers and micro-batches, with
/// whole and with split backwards.
std::vector<Case> manyCases() {
  std::vector<Case> cases;
  for (const Scheme &scheme : schemes())
    for (int32_t workers : {2, 4})
      for (int32_t microBatches : {2, 4, 8})
        for (bool isSplit : {false, true}) {
          Choice choice({}, scheme.stagesPerWorker);
          if (canPlan(scheme, workers, microBatches, choice))
            cases.push_back(makeCase(scheme.name, workers, microBatches,
                                     {3, 6, 4, 2}, isSplit, choice));
        }
  EXPECT_GT(cases.size(), 30u);
  return cases;
}

TEST(Html, HasTheTimesOfAllActions) {
  for (const Case &c : manyCases()) {
    const Timing timing = simulate(c.problem, c.schedule);
    const json timeline = onlyTimeline(c);
    EXPECT_EQ(timeline["end"], timing.makespan);
    ASSERT_EQ(timeline["workers"].size(), c.schedule.workers.size());
    for (size_t w = 0; w < c.schedule.workers.size(); ++w) {
      const json &worker = timeline["workers"][w];
      EXPECT_EQ(worker["start"], timing.starts[w]);
      ASSERT_EQ(worker["colour"].size(), c.schedule.workers[w].size());
      for (size_t i = 0; i < c.schedule.workers[w].size(); ++i) {
        const Action &action = c.schedule.workers[w][i];
        EXPECT_EQ(worker["length"][i], timing.ends[w][i] - timing.starts[w][i]);
        EXPECT_EQ(worker["stage"][i], action.stage);
        const std::string name =
            timeline["colours"][worker["colour"][i].get<size_t>()][3];
        EXPECT_EQ(name.substr(0, name.find(',')), wordsOf(action.kind));
      }
    }
  }
}

TEST(Html, ActionsNeedEarlierOnes) {
  for (const Case &c : manyCases()) {
    const json timeline = onlyTimeline(c);
    std::vector<int64_t> ends;
    for (const json &worker : timeline["workers"])
      for (size_t i = 0; i < worker["start"].size(); ++i)
        ends.push_back(worker["start"][i].get<int64_t>() +
                       worker["length"][i].get<int64_t>());
    size_t needs = 0;
    for (const json &worker : timeline["workers"])
      for (const char *which : {"same", "other"})
        for (size_t i = 0; i < worker[which].size(); ++i)
          if (int64_t need = worker[which][i]; need >= 0) {
            EXPECT_LE(ends.at(need), worker["start"][i]);
            ++needs;
          }
    // Each action needs another one, except the forwards of stage 0.
    EXPECT_GE(needs, ends.size() - c.problem.microBatches() * c.problem.steps)
        << c.scheme->name;
  }
}

TEST(Html, MemoryHasTheKnownPeaks) {
  for (Case c : manyCases()) {
    const Timing timing = simulate(c.problem, c.schedule);
    auto peaksOf = [&](const json &timeline) {
      std::vector<int64_t> peaks;
      for (const json &worker : timeline["workers"]) {
        int64_t most = 0;
        for (size_t i = 0; i < worker["memory"].size(); i += 2)
          most = std::max<int64_t>(most, worker["memory"][i + 1]);
        peaks.push_back(most);
      }
      EXPECT_EQ(timeline["most"], std::ranges::max(peaks));
      return peaks;
    };
    const json counted = onlyTimeline(c);
    EXPECT_FALSE(counted["isInBytes"]);
    if (maxParts(c.problem.pipelines) == 1) {
      EXPECT_EQ(peaksOf(counted),
                std::vector<int64_t>(timing.peakActivations.begin(),
                                     timing.peakActivations.end()))
          << c.scheme->name;
    }
    c.problem.bytes.assign(c.problem.stages.size(), {100, 50, 7, 3, 5});
    const json inBytes = onlyTimeline(c);
    EXPECT_TRUE(inBytes["isInBytes"]);
    EXPECT_EQ(peaksOf(inBytes), simulate(c.problem, c.schedule).peakBytes);
  }
}

TEST(Html, ActionsSendTheirBytes) {
  Case c = makeCase("1f1b", 2, 2);
  c.problem.bytes = {{.boundary = 10}, {.boundary = 20}};
  const json workers = onlyTimeline(c)["workers"];
  EXPECT_EQ(workers[0]["sends"], (json{10, 10, 0, 0}));
  // F0 B0 F1 B1: gradients are as large as the activations of stage 0.
  EXPECT_EQ(workers[1]["sends"], (json{0, 10, 0, 10}));
}

TEST(Html, NoTextEndsTheData) {
  const std::string title = "</script><!-- & \xff";
  EXPECT_EQ(onlyTimeline(makeCase("gpipe", 2, 2), title)["title"],
            "</script><!-- & \ufffd");
}

TEST(Html, AllReducesHaveRowsInWhichNoTwoOverlap) {
  size_t most = 0;
  for (Case c : manyCases()) {
    c.problem.allReduceMessage = {7, 0, 1};
    for (AllReducePolicy policy :
         {AllReducePolicy::Lazy, AllReducePolicy::Eager}) {
      c.problem.policy = policy;
      const Timing timing = simulate(c.problem, c.schedule);
      const SyncAndUpdate syncAndUpdate =
          syncAndUpdateOf(c.problem, c.schedule, timing);
      Timeline timeline{"p", "title", c.problem, c.schedule, timing};
      EXPECT_TRUE(onlyTimeline(c)["allReduces"].empty());
      timeline.syncAndUpdate = &syncAndUpdate;
      std::multiset<std::pair<int64_t, int64_t>> wanted, shown;
      for (const SyncAndUpdate::AllReduce &of : syncAndUpdate.allReduces)
        if (of.begin < of.end)
          wanted.emplace(of.begin, of.end);
      const json rows =
          dataOf(renderHtml({&timeline, 1}))["timelines"][0]["allReduces"];
      for (const json &row : rows) {
        int64_t end = 0;
        for (const json &span : row) {
          EXPECT_GE(span[0], end);
          end = span[1];
          shown.emplace(span[0], span[1]);
        }
      }
      EXPECT_EQ(shown, wanted) << c.scheme->name;
      most = std::max(most, rows.size());
    }
  }
  EXPECT_GT(most, 1u);
}

TEST(Html, DurationsShareAnAxis) {
  const Case c = makeCase("gpipe", 2, 2);
  const Timing timing = simulate(c.problem, c.schedule);
  auto timelineIn = [&](const char *unit) {
    return Timeline{"p",
                    "title",
                    c.problem,
                    c.schedule,
                    timing,
                    false,
                    {findTimeUnit(unit), 1}};
  };
  const Timeline durations[] = {timelineIn("ms"), timelineIn("us")};
  json data = dataOf(renderHtml(durations));
  EXPECT_EQ(data["axis"], "time in ms");
  EXPECT_EQ(data["unit"], "ms");
  EXPECT_EQ(data["timelines"][0]["ticks"], 1);
  EXPECT_EQ(data["timelines"][1]["ticks"], 1000);
  // 100,000 us are easier to read in ms.
  Case slow = makeCase("gpipe", 2, 2, {10000, 20000, 0, 0});
  const Timing slowTiming = simulate(slow.problem, slow.schedule);
  const Timeline large{
      "p",        "title", slow.problem,           slow.schedule,
      slowTiming, false,   {findTimeUnit("us"), 1}};
  data = dataOf(renderHtml({&large, 1}));
  EXPECT_EQ(data["axis"], "time in ms");
  EXPECT_EQ(data["timelines"][0]["ticks"], 1000);
  const Timeline numbers[] = {timelineIn("none"), timelineIn("us")};
  data = dataOf(renderHtml(numbers));
  EXPECT_EQ(data["unit"], "");
  EXPECT_EQ(data["timelines"][1]["ticks"], 1);
}

} // namespace
} // namespace chimera::schedule
