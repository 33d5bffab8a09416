//===- ReportTest.cpp - Reports and closed forms --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Report.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace chimera::schedule {
namespace {

Report report(const Case &c) {
  return makeReport("p", *c.scheme, c.options, 1, c.problem, c.schedule);
}

std::string render(const std::string &format, const Report &report) {
  for (const ReportFormat &known : reportFormats())
    if (format == known.name)
      return known.render({&report, 1});
  return {};
}

/// Every formula, wherever it says that it holds, against the simulator: every
/// scheme with all its options, N from 1 to 4D+3, b/f of 1/2, 1, 5/4, 2 and 3.
TEST(Formulas, EqualTheSimulatorWhereTheyHold) {
  std::set<const void *> used;
  for (const Scheme &scheme : schemes())
    for (int32_t d : {2, 3, 4, 5, 6, 8, 12})
      for (const SchemeOptions &options : choices(scheme, d))
        for (int32_t n = 1; n <= 4 * d + 3; ++n) {
          if (!scheme.check(d, n, options).empty())
            continue;
          Case c = makeCase(scheme.name, d, n, {}, false, options);
          for (int64_t b : {2, 4, 5, 8, 12}) {
            c.problem.stages.assign(d, {4, b, 1, 1});
            std::optional<Sizes> sizes = sizesOf(c.problem, options);
            ASSERT_TRUE(sizes);
            Timing timing = simulate(c.problem, c.schedule);
            SCOPED_TRACE(nameOf(scheme, d, n, options) +
                         " b=" + std::to_string(b));
            for (const BubbleFormula &formula : bubbleFormulas())
              if (formula.scheme == std::string(scheme.name) &&
                  formula.holds(*sizes)) {
                used.insert(&formula);
                EXPECT_NEAR(timing.bubbleRatio(), formula.value(*sizes), 1e-12)
                    << formula.formula;
              }
            for (const PeakFormula &formula : peakFormulas())
              if (formula.scheme == std::string(scheme.name) &&
                  formula.holds(*sizes)) {
                used.insert(&formula);
                auto [least, most] =
                    std::ranges::minmax(timing.peakActivations);
                EXPECT_EQ((std::pair<int64_t, int64_t>(least, most)),
                          formula.value(*sizes))
                    << formula.formula;
              }
          }
        }
  EXPECT_EQ(used.size(), bubbleFormulas().size() + peakFormulas().size());
}

TEST(Formulas, DoNotSpeakOfOtherProblems) {
  Case c = makeCase("chimera", 4, 4);
  EXPECT_TRUE(sizesOf(c.problem, {}));
  c.problem.link.alpha = 1;
  EXPECT_FALSE(sizesOf(c.problem, {}));
  c.problem.link.alpha = 0;
  c.problem.stages[2].backward = 3;
  EXPECT_FALSE(sizesOf(c.problem, {}));
  EXPECT_FALSE(sizesOf(makeCase("chimera", 4, 4, {}, true).problem, {}));
}

TEST(Report, HasBothBubblesAndTheGap) {
  Report r = report(makeCase("1f1b", 4, 8, {1, 2, 1, 1}));
  EXPECT_EQ(r.timing.makespan, 33);
  EXPECT_EQ(r.timing.flushBubble(), 9);
  EXPECT_DOUBLE_EQ(r.timing.bubbleRatio(), 9.0 / 33);
  // Worker 0 runs from the start to the end.
  EXPECT_EQ(r.timing.internalBubble(), 9);
  EXPECT_DOUBLE_EQ(r.internalBubbleRatio(), 9.0 / 33);
  ASSERT_TRUE(r.bubbleFormula);
  EXPECT_DOUBLE_EQ(r.bubbleValue, 3.0 / 11);
  ASSERT_TRUE(r.peakFormula);
  EXPECT_EQ(r.peakValue, (std::pair<int64_t, int64_t>(1, 4)));
  EXPECT_EQ(gap(r.timing, best(r.bounds)), 0);
}

/// The scheme's formulas say nothing of an order that is not the scheme's.
TEST(Report, ComparesNoFormulaWithAnotherOrder) {
  Case c = makeCase("1f1b", 2, 4, {1, 2, 1, 1});
  c.schedule = makeCase("gpipe", 2, 4, {1, 2, 1, 1}).schedule;
  Report r = report(c);
  EXPECT_FALSE(r.bubbleFormula);
  EXPECT_FALSE(r.peakFormula);
  EXPECT_EQ(r.notes, std::vector<std::string>{
                         "the order is not the scheme's own, so no formula is "
                         "compared"});
  EXPECT_EQ(r.timing.makespan, 15);
}

TEST(Report, PassesOnTheSchemesNote) {
  Report r = report(makeCase("chimera", 4, 4, {}, false, choose(4)));
  ASSERT_EQ(r.notes.size(), 1u);
  EXPECT_NE(r.notes[0].find("plain data parallelism"), std::string::npos);
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

TEST(Report, QuotesInCsv) {
  Report r = report(makeCase("chimera", 2, 2));
  r.name = "a,\"b\"";
  std::string csv = render("csv", r);
  std::string row = csv.substr(csv.find('\n') + 1);
  EXPECT_TRUE(row.starts_with("\"a,\"\"b\"\"\",chimera,")) << row;
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
