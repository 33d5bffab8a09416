//===- ReportTest.cpp - Reports of schedules ------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/report/Report.h"

#include "compiler/schedule/model/Recompute.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <regex>

namespace chimera::schedule {
namespace {

constexpr const char *kCapNote =
    "memory caps apply to the arena and the stashes of a program, which may "
    "need more than the peak bytes";

Report report(const Case &c) {
  return makeReport("p", c.scheme, c.choice.options, c.problem, c.schedule);
}

std::string render(const std::string &format, const Report &report) {
  for (const ReportFormat &known : reportFormats())
    if (format == known.name)
      return known.render({&report, 1});
  return {};
}

TEST(Report, HasBothBubblesAndTheGap) {
  Report r = report(makeCase("1f1b", 4, 8, {1, 2, 1, 1}));
  EXPECT_EQ(r.timing.makespan, 33);
  EXPECT_EQ(r.timing.flushBubble(), 9);
  EXPECT_DOUBLE_EQ(r.timing.bubbleRatio(), 9.0 / 33);
  // Worker 0 starts first and ends last, so both bubbles are equal.
  EXPECT_EQ(r.timing.internalBubble(), 9);
  EXPECT_DOUBLE_EQ(r.internalBubbleRatio(), 9.0 / 33);
  ASSERT_TRUE(r.bubbleFormula);
  EXPECT_DOUBLE_EQ(r.bubbleValue, 3.0 / 11);
  ASSERT_TRUE(r.peakFormula);
  EXPECT_EQ(r.peakValue, (std::pair<int64_t, int64_t>(1, 4)));
  EXPECT_EQ(gapTo(r.timing, bestBound(r.bounds)), 0);
}

TEST(Report, PassesOnTheSchemesNote) {
  Report r = report(makeCase("chimera", 4, 4, {}, false, chimeraWith(4)));
  ASSERT_EQ(r.notes.size(), 1u);
  EXPECT_NE(r.notes[0].find("plain data parallelism"), std::string::npos);
}

/// A report with recomputes also has the makespan and the memory peaks of the
/// same order without recomputes.
TEST(Report, ComparesRecomputesWithNone) {
  Case c = makeCase("chimera", 4, 4, {1, 2, 1, 1});
  c.problem.bytes.assign(4, {10, 0, 100, 100, 1});
  EXPECT_FALSE(report(c).withoutRecompute);
  Timing without = simulate(c.problem, c.schedule);
  for (auto [how, word, makespan, noted] :
       {std::tuple{Recompute::Early, "early", 19, false},
        {Recompute::Fused, "fused", 22, true}}) {
    Case again = c;
    again.problem.recompute.assign(4, how);
    again.schedule = insertRecompute(again.problem, again.schedule);
    Report r = report(again);
    ASSERT_TRUE(r.withoutRecompute);
    EXPECT_EQ(r.timing.makespan, makespan);
    EXPECT_EQ(r.withoutRecompute->makespan, 16);
    EXPECT_EQ(r.withoutRecompute->peakBytes, without.peakBytes);
    // One note is about the bubble formula. The other one suggests settings
    // with which the step takes less time.
    EXPECT_EQ(r.notes.size(), noted ? 2u : 0u);
    EXPECT_EQ(r.bubbleFormula != nullptr, noted);
    nlohmann::json object = nlohmann::json::parse(render("json", r))[0];
    EXPECT_EQ(object["recomputation"], word);
    EXPECT_EQ(object["recompute"], 1);
    EXPECT_EQ(object["makespan_without_recomputes"], 16);
    EXPECT_EQ(object["bubble_ratio_without_recomputes"], 0.25);
    EXPECT_EQ(object["peak_activations"], (std::vector<int>{1, 1, 1, 1}));
    EXPECT_EQ(object["peak_activations_without_recomputes"],
              (std::vector<int>{3, 4, 4, 3}));
    EXPECT_EQ(object["peak_bytes_without_recomputes"], without.peakBytes);
  }
  c.problem.recompute = {Recompute::Early, Recompute::None, Recompute::None,
                         Recompute::None};
  c.schedule = insertRecompute(c.problem, c.schedule);
  EXPECT_EQ(
      nlohmann::json::parse(render("json", report(c)))[0]["recomputation"],
      (std::vector<std::string>{"early", "none", "none", "none"}));
}

/// If the sizes of stages are unknown, the report has no bytes.
TEST(Report, HasNoBytesWithoutSizes) {
  Case c = makeCase("1f1b", 2, 4, {1, 2, 1, 1, 1});
  c.problem.recompute.assign(2, Recompute::Early);
  c.schedule = insertRecompute(c.problem, c.schedule);
  ASSERT_TRUE(c.problem.bytes.empty());
  const Report r = report(c);
  EXPECT_EQ(render("table", r).find("bytes per worker"), std::string::npos);
  nlohmann::json object = nlohmann::json::parse(render("json", r))[0];
  for (const char *name : {"receive_window_bytes", "resident_bytes",
                           "peak_bytes", "peak_bytes_without_recomputes"})
    EXPECT_TRUE(object[name].is_null()) << name;
}

/// The report has the receive window that the simulator chooses, and the
/// makespans of smaller windows. If the description gives a window, the report
/// has only the makespan of that one.
TEST(Report, HasTheReceiveWindow) {
  Case c = makeCase("gpipe", 2, 4, {1, 2, 1, 1});
  c.problem.bytes.assign(2, {1, 1, 1, 1, 8});
  nlohmann::json object = nlohmann::json::parse(render("json", report(c)))[0];
  EXPECT_EQ(object["receive_window"], 1);
  EXPECT_EQ(object["receive_window_bytes"], (std::vector<int>{8, 8}));
  EXPECT_TRUE(object["receive_window_makespans"].empty());
  c.problem.link.alpha = 3;
  Report chosen = report(c);
  EXPECT_GT(chosen.receiveWindow, 1);
  EXPECT_EQ(chosen.windowMakespans.back(),
            std::pair(chosen.receiveWindow, chosen.timing.makespan));
  EXPECT_EQ(chosen.windowMakespans.front().first, 1);
  EXPECT_GT(chosen.windowMakespans.front().second, chosen.timing.makespan);
  Report one =
      makeReport("p", c.scheme, c.choice.options, c.problem, c.schedule, {}, 1);
  EXPECT_EQ(one.receiveWindow, 1);
  EXPECT_EQ(one.windowMakespans.size(), 1u);
  EXPECT_EQ(one.windowMakespans.front(), chosen.windowMakespans.front());
  EXPECT_TRUE(one.notes.empty());
  // There are no memory caps, so there is no note about them.
  EXPECT_TRUE(chosen.notes.empty());
  c.problem.memoryCaps = {1000, 1000};
  EXPECT_EQ(report(c).notes, (std::vector<std::string>{
                                 "the compiler uses a smaller receive window "
                                 "if workers would exceed their caps",
                                 kCapNote}));
  EXPECT_EQ(
      makeReport("p", c.scheme, c.choice.options, c.problem, c.schedule, {}, 1)
          .notes,
      std::vector<std::string>{kCapNote});
  c.problem.memoryCaps.clear();
  // Worker 1 receives the messages in another order than worker 0 sends them.
  std::rotate(c.schedule.workers[1].begin(), c.schedule.workers[1].begin() + 2,
              c.schedule.workers[1].begin() + 3);
  one =
      makeReport("p", c.scheme, c.choice.options, c.problem, c.schedule, {}, 1);
  EXPECT_TRUE(one.windowMakespans.empty());
  EXPECT_EQ(one.notes.front(),
            "a receive window of 1 is too small, because messages overtake "
            "each other: at least 3 is needed");
}

/// Each bucket of a gradient has its own latency.
TEST(Report, HasBuckets) {
  Case c = makeCase("chimera", 4, 8);
  c.problem.bytes.assign(4, {64, 0, 0, 0, 0});
  c.problem.link.alpha = 1000;
  nlohmann::json object = nlohmann::json::parse(render("json", report(c)))[0];
  EXPECT_EQ(object["all_reduces"], (std::vector<int>(4, 2000)));
  EXPECT_TRUE(object["all_reduce_buckets"].is_null());
  // Each gradient is cut into buckets of 24, 24 and 16 bytes. Each bucket takes
  // two messages, one after another. A worker has two stages.
  c.problem.bucketBytes = 24;
  object = nlohmann::json::parse(render("json", report(c)))[0];
  EXPECT_EQ(object["all_reduces"], (std::vector<int>(4, 6000)));
  EXPECT_EQ(object["all_reduce_buckets"], (std::vector<int>(4, 3)));
  EXPECT_TRUE(object["all_reduce_tied_buckets"].is_null());
  EXPECT_EQ(object["all_reduce_unoverlapped"]["lazy"], 12000);
  // The tied matrix has an all-reduce of its own, over all four workers. Its 40
  // bytes are cut into two buckets.
  c.problem.tiedBytes = 40;
  object = nlohmann::json::parse(render("json", report(c)))[0];
  EXPECT_EQ(object["all_reduces"], (std::vector<int>{2000, 6000, 6000, 2000}));
  EXPECT_EQ(object["all_reduce_buckets"], (std::vector<int>{1, 3, 3, 1}));
  EXPECT_EQ(object["all_reduce_tied_buckets"], 2);
  // The tied all-reduce is only over two workers, which both have the first and
  // the last stage.
  EXPECT_EQ(object["all_reduce_tied"], 4000);
  // Both replicas of the middle stage are on one worker, so its gradient is not
  // sent.
  c = makeCase("chimera", 3, 3);
  c.problem.bytes.assign(3, {64, 0, 0, 0, 0});
  c.problem.link.alpha = 1000;
  c.problem.bucketBytes = 8;
  object = nlohmann::json::parse(render("json", report(c)))[0];
  EXPECT_EQ(object["all_reduces"], (std::vector<int>{16000, 0, 16000}));
  EXPECT_EQ(object["all_reduce_buckets"], (std::vector<int>{8, 0, 8}));
}

/// The report has the times of messages, the times for which messages occupy
/// workers, and the memory caps. It has these fields only if the problem has
/// such times and caps.
TEST(Report, HasMessagesAndCaps) {
  const char *const names[] = {"p2p_bytes", "send",        "send_bytes",
                               "receive",   "memory_caps", "receive_bytes",
                               "occupied"};
  Case c = makeCase("1f1b", 2, 1, {1, 2, 1, 1});
  nlohmann::json object = nlohmann::json::parse(render("json", report(c)))[0];
  for (const char *name : names)
    EXPECT_TRUE(object[name].empty()) << name;
  c.problem.link = {{1, 2, 8}, {0, 3, 8}, {5, 0, 1}};
  c.problem.bytes.assign(2, {1, 1, 1, 1, 8});
  c.problem.memoryCaps = {100, 200};
  object = nlohmann::json::parse(render("json", report(c)))[0];
  EXPECT_EQ(object["p2p"], 1);
  EXPECT_EQ(object["p2p_bytes"], "2 for each 8 bytes");
  EXPECT_EQ(object["send"], 0);
  EXPECT_EQ(object["send_bytes"], "3 for each 8 bytes");
  EXPECT_EQ(object["receive"], 5);
  EXPECT_TRUE(object["receive_bytes"].is_null());
  EXPECT_EQ(object["memory_caps"], (std::vector<int>{100, 200}));
  EXPECT_EQ(object["occupied"], (std::vector<int>{8, 8}));
  EXPECT_EQ(object["makespan"], 6 + 2 * (3 + 3 + 5));
}

/// If a schedule exceeds its memory caps, there is still a report, with a mark.
/// The bounds in it ignore the caps.
TEST(Report, MarksWorkersAboveTheirCap) {
  Case c = makeCase("gpipe", 2, 4, {1, 2, 1, 1});
  c.problem.bytes.assign(2, {1, 1, 100, 100, 8});
  c.problem.memoryCaps = {500, 500};
  nlohmann::json object = nlohmann::json::parse(render("json", report(c)))[0];
  EXPECT_TRUE(object["over_memory_cap"].is_null());
  EXPECT_TRUE(object["bounds"].contains("LB4"));
  c.problem.memoryCaps = {500, 300};
  Report refused = report(c);
  refused.title = "a title";
  object = nlohmann::json::parse(render("json", refused))[0];
  EXPECT_EQ(object["title"], "a title");
  EXPECT_EQ(
      object["over_memory_cap"],
      "at least 411 bytes on worker 1 at backward of stage 1, micro-batch 0");
  EXPECT_EQ(object["makespan"], 15);
  EXPECT_FALSE(object["bounds"].contains("LB4"));
  std::string table = render("table", refused);
  EXPECT_EQ(table.find("a title\npipeline "), 0u);
  EXPECT_NE(table.find("  REFUSED, exceeded by"), std::string::npos);
}

/// If steps overlap, the report has the time of a step and the number of weight
/// versions.
TEST(Report, HasTheSteadyState) {
  Case c = makeCase("pipedream", 4, 6, {1, 2, 1, 1});
  nlohmann::json object = nlohmann::json::parse(render("json", report(c)))[0];
  EXPECT_EQ(object["steps"], 2);
  EXPECT_EQ(object["makespan"], 45);
  EXPECT_EQ(object["step"], 18);
  EXPECT_EQ(object["step_bubble_ratio"], 0.0);
  EXPECT_EQ(object["bubble_ratio_formula"], 0.0);
  EXPECT_EQ(object["weight_versions"], (std::vector<int>{4, 3, 2, 1}));
  EXPECT_EQ(object["peak_activations_formula_interval"],
            (std::vector<int>{1, 4}));
  c.problem.link.alpha = 1;
  std::string table = render("table", report(c));
  for (const char *row : {"step \\(mean of many\\) +27\n",
                          "steady state: bubble of a step +33.3 %\n"})
    EXPECT_TRUE(std::regex_search(table, std::regex(row))) << row << table;
  c = makeCase("pipedream-2bw", 4, 5, {1, 2, 1, 1});
  c.problem.link.alpha = 1;
  object = nlohmann::json::parse(render("json", report(c)))[0];
  EXPECT_EQ(object["step"], 22.5);
  EXPECT_EQ(object["weight_versions"], (std::vector<int>{2, 2, 2, 2}));
  EXPECT_NE(render("table", report(c)).find(" 22.5\n"), std::string::npos);
  // With fused recomputes and without message times, a step takes N (f + b +
  // R).
  c.problem.link.alpha = 0;
  c.problem.recompute.assign(4, Recompute::Fused);
  c.schedule = insertRecompute(c.problem, c.schedule);
  object = nlohmann::json::parse(render("json", report(c)))[0];
  EXPECT_EQ(object["step"], 20);
  EXPECT_EQ(object["step_period_without_recomputes"], 15);
  EXPECT_TRUE(nlohmann::json::parse(render(
      "json", report(makeCase("gpipe", 2, 2))))[0]["weight_versions"]
                  .is_null());
}

TEST(Report, HasTheSameFieldsInCsvAndJson) {
  Report r = report(makeCase("chimera", 4, 8, {1, 2, 1, 1}));
  std::string csv = render("csv", r);
  std::string head = csv.substr(0, csv.find('\n')) + ",";
  nlohmann::ordered_json object =
      nlohmann::ordered_json::parse(render("json", r)).at(0);
  for (const auto &[name, value] : object.items()) {
    EXPECT_EQ(head.find(name + ","), 0u) << name;
    head.erase(0, name.size() + 1);
  }
  EXPECT_EQ(head, "");
  EXPECT_EQ(object["makespan"], 30);
  EXPECT_EQ(object["bubble_ratio"], 0.2);
  EXPECT_EQ(object["peak_activations"], (std::vector<int>{3, 4, 4, 3}));
  EXPECT_EQ(object["bounds"]["LB1"], 24);
}

/// A unit is ten ticks here. The report has times in units. Other numbers, such
/// as bytes, do not change.
TEST(Report, CountsInUnitsIfTimesHaveFractions) {
  Case c = makeCase("gpipe", 2, 2, {5, 20, 1, 1});
  c.problem.stages[1].forward = 7;
  c.problem.link = {{1, 3, kMebibyte}};
  c.problem.link.receive.alpha = 2;
  c.problem.bytes.assign(2, {64, 1, 1, 1, 8});
  c.problem.width = 2;
  Report r = makeReport("p", c.scheme, c.choice.options, c.problem, c.schedule,
                        {findTimeUnit("us"), 10});
  nlohmann::json object = nlohmann::json::parse(render("json", r))[0];
  auto units = [](int64_t ticks) { return static_cast<double>(ticks) / 10; };
  EXPECT_EQ(object["time_unit"], "us");
  EXPECT_EQ(object["forward"], (std::vector<double>{0.5, 0.7}));
  EXPECT_TRUE(object["backward"].is_number_integer());
  EXPECT_EQ(object["backward"], 2);
  EXPECT_EQ(object["p2p"], 0.1);
  EXPECT_EQ(object["p2p_bytes"], "0.3 for each 1048576 bytes");
  EXPECT_EQ(object["receive"], 0.2);
  EXPECT_EQ(object["makespan"], units(r.timing.makespan));
  EXPECT_EQ(object["load"], units(r.timing.maxLoad()));
  EXPECT_EQ(object["flush_bubble"], units(r.timing.flushBubble()));
  EXPECT_EQ(object["internal_bubble"], units(r.timing.internalBubble()));
  EXPECT_EQ(object["bubble_ratio"], r.timing.bubbleRatio());
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(object["idle"][i], units(r.timing.idle[i]));
    EXPECT_EQ(object["occupied"][i], units(r.timing.occupied[i]));
    EXPECT_EQ(object["all_reduces"][i], units(r.allReduces.at(i)));
  }
  EXPECT_EQ(object["all_reduce_unoverlapped"]["lazy"],
            r.unoverlapped.front() / 10);
  EXPECT_EQ(object["receive_window_makespans"]["1"],
            units(r.windowMakespans.front().second));
  EXPECT_EQ(object["bounds"]["LB1"], units(r.bounds.front().time));
  std::string table = render("table", r), csv = render("csv", r);
  EXPECT_TRUE(
      std::regex_search(table, std::regex("forward \\(f\\) +0.5 us, 0.7 us\n")))
      << table;
  EXPECT_NE(csv.find(",us,0.5 0.7,,2,"), std::string::npos) << csv;
  // Now steps overlap, some stages recompute, and the first and the last stage
  // share a matrix.
  c = makeCase("pipedream", 2, 2, {1, 2, 1, 1, 1});
  c.problem.recompute.assign(2, Recompute::Early);
  c.schedule = insertRecompute(c.problem, c.schedule);
  r = makeReport("p", c.scheme, c.choice.options, c.problem, c.schedule,
                 {findTimeUnit("none"), 10});
  object = nlohmann::json::parse(render("json", r))[0];
  EXPECT_EQ(object["recompute"], 0.1);
  EXPECT_EQ(object["makespan_without_recomputes"],
            units(r.withoutRecompute->makespan));
  EXPECT_EQ(object["step"], r.steady->period / 10);
  EXPECT_EQ(object["step_period_without_recomputes"],
            r.steadyWithoutRecompute->period / 10);
}

/// An order without a scheme has no formula, even if a scheme makes the same
/// order.
TEST(Report, AcceptsAHandWrittenOrder) {
  Case c = makeCase("gpipe", 2, 2, {1, 2, 1, 1});
  Report r = makeReport("p", nullptr, {}, c.problem, c.schedule);
  r.schedule = "mine";
  nlohmann::json object = nlohmann::json::parse(render("json", r))[0];
  EXPECT_EQ(object["schedule"], "mine");
  EXPECT_TRUE(object["options"].empty());
  EXPECT_EQ(object["makespan"], 9);
  EXPECT_TRUE(object["bubble_formula"].is_null());
  EXPECT_TRUE(object["peak_activations_formula"].is_null());
  EXPECT_EQ(r.notes, std::vector<std::string>{
                         "no formula is compared, because the order is given"});
}

TEST(Report, QuotesInCsv) {
  Report r = report(makeCase("chimera", 2, 2));
  r.name = "a,\"b\"";
  std::string csv = render("csv", r);
  std::string row = csv.substr(csv.find('\n') + 1);
  EXPECT_TRUE(row.starts_with("\"a,\"\"b\"\"\",,chimera,")) << row;
}

TEST(Report, ListsStagesThatDiffer) {
  Case c = makeCase("gpipe", 2, 2, {1, 2, 1, 1});
  c.problem.stages[1].forward = 5;
  nlohmann::json object = nlohmann::json::parse(render("json", report(c)))[0];
  EXPECT_EQ(object["forward"], (std::vector<int>{1, 5}));
  EXPECT_EQ(object["backward"], 2);
  EXPECT_TRUE(object["bubble_formula"].is_null());
}

} // namespace
} // namespace chimera::schedule
