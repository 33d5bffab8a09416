//===- SideBySideTest.cpp - Predicted steps beside measured ones ----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/SideBySide.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "compiler/schedule/timeline/Differences.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <regex>
#include <set>

namespace chimera::schedule {
namespace {

using nlohmann::json;

/// A prediction and a measured run of chimera with 2 workers and 2
/// micro-batches. Forwards take 10 ms and backwards 20 ms:
///
///   P0 F0 f1 b1 = B0 =
///   P1 f1 F0 B0 = b1 =
class SideBySideTest : public testing::Test {
protected:
  SideBySideTest()
      : c(makeCase("chimera", 2, 2, {10, 20, 1, 1})),
        timing(simulate(c.problem, c.schedule)), timeline{"p", "look <&",
                                                          c.problem, c.schedule,
                                                          timing} {
    timeline.scale = {findTimeUnit("ms")};
    static_cast<NanosecondStep &>(run) = *nanosecondStepOf(timeline);
  }

  /// Changes the measured run: action `i` of worker `w` starts `late` ms later
  /// or, if `longer`, takes `late` ms longer. All later actions of the worker
  /// also start `late` ms later.
  void delay(size_t w, size_t i, int64_t late, bool longer = false) {
    late *= 1'000'000;
    std::vector<int64_t> &starts = run.timing.starts[w];
    for (size_t j = longer ? i + 1 : i; j < starts.size(); ++j)
      starts[j] += late;
    for (size_t j = i; j < starts.size(); ++j)
      run.timing.ends[w][j] += late;
    run.computeTotals();
  }

  std::vector<std::string> found(const char *name, size_t most = 9) const {
    std::vector<std::string> texts;
    SideBySide both(timeline, *nanosecondStepOf(timeline), run);
    for (const DifferenceKind &kind : differenceKinds())
      if (name == std::string(kind.name))
        for (const Difference &difference :
             largestDifferences(kind, both.prediction, both.run, most))
          texts.push_back(describe(both.measured, kind, difference));
    return texts;
  }

  Case c;
  Timing timing;
  Timeline timeline;
  MeasuredStep run;
};

using Texts = std::vector<std::string>;

TEST_F(SideBySideTest, FindsNoDifferences) {
  for (const DifferenceKind &kind : differenceKinds())
    EXPECT_EQ(found(kind.name), Texts()) << kind.name;
}

TEST_F(SideBySideTest, RanksDurations) {
  delay(0, 1, 2, true);
  delay(1, 2, -3, true);
  delay(1, 3, 2, true);
  EXPECT_EQ(found("durations"),
            (Texts{"B0 of stage 1 on P1: 17 ms measured, 20 ms predicted, "
                   "-15.0 %",
                   "f1 of stage 1 on P0: 12 ms measured, 10 ms predicted, "
                   "+20.0 %",
                   "b1 of stage 0 on P1: 22 ms measured, 20 ms predicted, "
                   "+10.0 %"}));
  EXPECT_EQ(found("durations", 1).size(), 1u);
}

TEST_F(SideBySideTest, RanksWaitsAndStarts) {
  delay(0, 2, 8);
  EXPECT_EQ(found("waits"),
            (Texts{"P0 waits 8 ms longer before b1 of stage 1: 8 ms measured, "
                   "0 ms predicted"}));
  EXPECT_EQ(found("starts").size(), 2u);
}

size_t count(const std::string &text, const std::string &part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + part.size()))
    ++found;
  return found;
}

/// An update after the last action is busy time. The wait before the update is
/// listed as a difference.
TEST_F(SideBySideTest, ListsUpdatesAndWaitsAfterActions) {
  int64_t end = nanosecondStepOf(timeline)->timing.makespan;
  SyncAndUpdate::Work wait, update;
  wait.begin = end;
  wait.end = update.begin = end + 2'000'000;
  wait.stage = update.stage = 0;
  update.end = end + 5'000'000;
  update.pipeline = 0;
  run.syncAndUpdate.work[0] = {wait, update};
  run.computeTotals();
  EXPECT_EQ(found("waits"), (Texts{"P0 takes 5 ms longer after its actions: 5 "
                                   "ms measured, 0 ms predicted"}));
  EXPECT_EQ(run.end(), end + 5'000'000);
  EXPECT_EQ(run.busy(0), 63'000'000);
}

TEST_F(SideBySideTest, IsATable) {
  delay(0, 2, 8);
  run.step = 3;
  run.copy = 1;
  run.copies = 2;
  run.isSlowest = true;
  SideBySide both(timeline, *nanosecondStepOf(timeline), run);
  EXPECT_EQ(
      renderTextSideBySide(both),
      "look <&\n"
      "measured: step 3 of copy 1, the slowest of 2\n"
      "worker  step: predicted  measured  busy: predicted  measured  idle: "
      "predicted  measured\n"
      "P0                60 ms     68 ms            60 ms     60 ms            "
      " "
      "0 ms      8 ms\n"
      "P1                60 ms     60 ms            60 ms     60 ms            "
      " "
      "0 ms      8 ms\n"
      "durations: no differences\n"
      "waits, the largest differences:\n"
      "  P0 waits 8 ms longer before b1 of stage 1: 8 ms measured, 0 ms "
      "predicted\n"
      "starts, the largest differences:\n"
      "  b1 of stage 1 on P0 starts 8 ms later: 28 ms measured, 20 ms "
      "predicted\n"
      "  B0 of stage 0 on P0 starts 8 ms later: 48 ms measured, 40 ms "
      "predicted\n"
      "step: 68 ms measured, 60 ms predicted, +13.3 %\n");
  run.isSlowest = false;
  EXPECT_EQ(SideBySide(timeline, *nanosecondStepOf(timeline), run).nameOfRun(),
            "step 3 of copy 1 of 2");
}

TEST_F(SideBySideTest, SaysThatRanksSharedCores) {
  constexpr char kNote[] =
      "ranks shared cores in this run, so actions and waits took longer";
  for (bool sharedCores : {false, true}) {
    run.sharedCores = sharedCores;
    SideBySide both(timeline, *nanosecondStepOf(timeline), run);
    const size_t times = sharedCores ? 1 : 0;
    EXPECT_EQ(
        count(renderTextSideBySide(both), std::string("\n") + kNote + "\n"),
        times);
    EXPECT_EQ(count(renderSvgSideBySide(both), kNote), times);
  }
}

/// For each row of the picture, the left edges of its boxes, in order.
std::vector<std::vector<double>> rowsOf(const std::string &svg) {
  std::vector<std::vector<double>> rows;
  std::regex row(
      "<g transform=\"translate\\(0 [^<]*>\\n((<g><title>[^\n]*\n)*)"),
      box("<rect class=\"k\\d [ud]\" x=\"([0-9.]+)\"");
  for (std::sregex_iterator i(svg.begin(), svg.end(), row), end; i != end;
       ++i) {
    std::string boxes = (*i)[1];
    std::vector<double> &edges = rows.emplace_back();
    for (std::sregex_iterator j(boxes.begin(), boxes.end(), box); j != end; ++j)
      edges.push_back(std::stod((*j)[1]));
  }
  return rows;
}

TEST_F(SideBySideTest, IsAPictureOfPairs) {
  delay(0, 2, 8);
  SideBySide both(timeline, *nanosecondStepOf(timeline), run);
  std::string svg = renderSvgSideBySide(both);
  std::vector<std::vector<double>> rows = rowsOf(svg);
  ASSERT_EQ(rows.size(), 4u); // predicted and measured, P0 and P1
  for (const std::vector<double> &row : rows)
    ASSERT_EQ(row.size(), 4u);
  EXPECT_EQ(rows[0][1], rows[1][1]);
  EXPECT_EQ(rows[2], rows[3]);
  // The predicted and the measured row have the same axis: a difference of 8 ms
  // is 0.8 times as wide as a forward.
  double forward = rows[0][1] - rows[0][0];
  EXPECT_NEAR(rows[1][2] - rows[0][2], 0.8 * forward, 0.05);
  EXPECT_EQ(count(svg, ">predicted</text>"), 2u);
  EXPECT_EQ(count(svg, ">measured</text>"), 2u);
  EXPECT_EQ(count(svg, ">P1</text>"), 1u);
  EXPECT_EQ(count(svg, "P0, measured: idle 8 ms of 68 ms (11.8 %)"), 1u);
  EXPECT_EQ(count(svg, ">P0 waits 8 ms longer before b1 of stage 1: 8 ms "
                       "measured, 0 ms predicted</text>"),
            1u);
  EXPECT_EQ(count(svg, "step: 68 ms measured, 60 ms predicted, +13.3 %"), 1u);
  EXPECT_EQ(count(svg, ">time in ms</text>"), 1u);
  EXPECT_EQ(count(svg, "look &lt;&amp;"), 1u);
}

/// The names in the legend, separated by blanks.
std::string legendOf(const std::string &svg) {
  size_t begin = svg.find("<g class=\"legend\"");
  std::string legend = svg.substr(begin, svg.find("</g>", begin) - begin);
  std::regex name(">([^<\n]+)</text>");
  std::string names;
  for (std::sregex_iterator i(legend.begin(), legend.end(), name), end;
       i != end; ++i)
    names += (names.empty() ? "" : " ") + (*i)[1].str();
  return names;
}

double widthOf(const std::string &svg) {
  const std::string before = "version=\"1.1\" width=\"";
  return std::stod(svg.substr(svg.find(before) + before.size()));
}

TEST_F(SideBySideTest, IsAPictureOfARangeOfTime) {
  delay(0, 2, 8);
  timeline.picture = {.from = 35, .to = 65, .hasTitle = false};
  SideBySide both(timeline, *nanosecondStepOf(timeline), run);
  EXPECT_EQ(pictureError(both), "");
  std::string svg = renderSvgSideBySide(both);
  EXPECT_EQ(legendOf(svg), "backward, down backward, up bubble");
  std::vector<std::vector<double>> rows = rowsOf(svg);
  ASSERT_EQ(rows.size(), 4u);
  // The action b1 ends at 40 ms in the prediction, and at 48 ms in the run.
  // Then B0 begins.
  ASSERT_EQ(rows[0].size(), 2u);
  ASSERT_EQ(rows[1].size(), 2u);
  EXPECT_EQ(rows[0][0], rows[1][0]);
  EXPECT_NEAR((rows[1][1] - 0.5) * 5, (rows[0][1] - 0.5) * 13, 0.2);
  EXPECT_EQ(count(svg, "class=\"title\""), 0u);
  EXPECT_EQ(count(svg, ">idle</text>"), 1u);
  timeline.picture.hasIdle = false;
  std::string narrow = renderSvgSideBySide(
      SideBySide(timeline, *nanosecondStepOf(timeline), run));
  EXPECT_EQ(count(narrow, ">idle</text>"), 0u);
  EXPECT_EQ(widthOf(narrow), widthOf(svg) - 46);
  timeline.picture = {.from = 68};
  EXPECT_EQ(
      pictureError(SideBySide(timeline, *nanosecondStepOf(timeline), run)),
      "expected a range of time that begins before 68 ms, where the "
      "schedule ends, got one from 68");
}

/// The picture of a run is valid for any times, even if all are 0.
TEST_F(SideBySideTest, IsAPictureOfAnyTimes) {
  for (int64_t time : {int64_t{0}, int64_t{1}, kMostNanoseconds / 16}) {
    for (size_t w = 0; w < 2; ++w)
      for (size_t i = 0; i < run.timing.starts[w].size(); ++i) {
        run.timing.starts[w][i] = static_cast<int64_t>(i) * time;
        run.timing.ends[w][i] = run.timing.starts[w][i] + time;
      }
    run.computeTotals();
    std::string svg = renderSvgSideBySide(
        SideBySide(timeline, *nanosecondStepOf(timeline), run));
    EXPECT_EQ(count(svg, "nan"), 0u) << time;
    EXPECT_EQ(count(svg, "inf"), 0u) << time;
    EXPECT_LT(svg.size(), 20000u) << time;
  }
}

TEST_F(SideBySideTest, IsATraceOfTwoProcesses) {
  delay(0, 2, 8);
  run.others.resize(2);
  MeasuredStep::Other &other = run.others[1].emplace_back();
  other.end = 1000;
  other.name = "receive \xff";
  other.category = "message wait";
  SideBySide both(timeline, *nanosecondStepOf(timeline), run);
  json document = json::parse(renderChromeTraceSideBySide(both));
  std::vector<std::string> processes;
  std::map<int, std::set<std::string>> names;
  std::set<int64_t> messages;
  for (const json &event : document["traceEvents"]) {
    if (event["name"] == "process_name")
      processes.push_back(event["args"]["name"]);
    if (event["ph"] == "X")
      names[event["pid"]].insert(event["name"]);
    if (event["ph"] == "s") {
      EXPECT_TRUE(messages.insert(event["id"].get<int64_t>()).second);
    }
    if (event["ph"] == "X" && event["name"] == "backward 1" &&
        event["tid"] == 0) {
      EXPECT_EQ(event["ts"], event["pid"] == 0 ? 20000 : 28000);
      EXPECT_EQ(event["dur"], 20000);
    }
  }
  EXPECT_EQ(processes, (Texts{"predicted: look <&", "measured: a step"}));
  EXPECT_TRUE(names[1].erase("receive \uFFFD"));
  EXPECT_EQ(names[0], names[1]);
  const json &data = document["otherData"];
  EXPECT_EQ(data["step"],
            (json{{"predicted_us", 60000}, {"measured_us", 68000}}));
  EXPECT_EQ(data["differences"]["durations"], json::array());
  EXPECT_EQ(data["differences"]["waits"],
            (json{{{"what", "P0 waits 8 ms longer before b1 of stage 1: 8 ms "
                            "measured, 0 ms predicted"},
                   {"worker", 0},
                   {"predicted_us", 0},
                   {"measured_us", 8000}}}));
}

/// A step that takes months has no NanosecondStep, whose times might overflow.
TEST(NanosecondStep, IsShorterThanHundredDays) {
  Case c = makeCase("1f1b", 2, 2, {int64_t{1} << 55, 1, 1, 1});
  Timing timing = simulate(c.problem, c.schedule);
  Timeline timeline{"p", "title", c.problem, c.schedule, timing};
  for (const char *unit : {"ns", "us", "ms", "s"}) {
    timeline.scale = {findTimeUnit(unit)};
    EXPECT_FALSE(nanosecondStepOf(timeline)) << unit;
  }
}

/// If a tick is a fraction of a nanosecond, ends and starts are rounded in the
/// same way: no action starts before the previous one ends.
TEST(NanosecondStep, RoundsEndsAndStartsAlike) {
  Case c = makeCase("gpipe", 1, 9, {7, 13, 1, 1});
  Timing timing = simulate(c.problem, c.schedule);
  Timeline timeline{"p", "title", c.problem, c.schedule, timing};
  timeline.scale = {findTimeUnit("ns"), 10};
  std::optional<NanosecondStep> step = nanosecondStepOf(timeline);
  ASSERT_TRUE(step);
  for (size_t i = 0; i <= step->timing.ends[0].size(); ++i)
    EXPECT_EQ(step->waitBefore(0, i), 0);
  EXPECT_EQ(step->end(), 18);
}

} // namespace
} // namespace chimera::schedule
