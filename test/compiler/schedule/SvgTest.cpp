//===- SvgTest.cpp - Pictures ---------------------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Svg.h"

#include "compiler/schedule/Recompute.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

#include <regex>

namespace chimera::schedule {
namespace {

struct Drawing {
  Case c;
  Timing timing;
  std::string svg;
};

Drawing draw(Case c, const std::string &title = "title") {
  Drawing drawing{std::move(c), {}, {}};
  drawing.timing = simulate(drawing.c.problem, drawing.c.schedule);
  Timeline timeline{"p", title, drawing.c.problem, drawing.c.schedule,
                    drawing.timing};
  drawing.svg = renderSvg({&timeline, 1});
  return drawing;
}

size_t count(const std::string &text, const std::string &part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + part.size()))
    ++found;
  return found;
}

/// Left edge and width of the boxes of a row, in their order.
std::vector<std::pair<double, double>> boxes(const std::string &svg,
                                             size_t worker) {
  std::regex box("micro-batch \\d+, stage \\d+, pipeline \\d+ \\(\\w+\\), P" +
                 std::to_string(worker) +
                 ", .*?<rect class=\"k\\d [ud]\" x=\"([0-9.]+)\" "
                 "width=\"([0-9.]+)\"");
  std::vector<std::pair<double, double>> found;
  for (std::sregex_iterator i(svg.begin(), svg.end(), box), end; i != end; ++i)
    found.push_back({std::stod((*i)[1]), std::stod((*i)[2])});
  return found;
}

/// What the issue names as the size at which a picture must be legible.
TEST(Svg, DrawsEveryActionWhereItRuns) {
  Drawing d = draw(makeCase("chimera", 32, 64, {1, 2, 1, 1}));
  EXPECT_EQ(count(d.svg, " of micro-batch "), 2u * 32 * 64);
  for (size_t w = 0; w < 32; ++w) {
    auto found = boxes(d.svg, w);
    ASSERT_EQ(found.size(), d.timing.starts[w].size());
    double unit =
        found.back().first / static_cast<double>(d.timing.starts[w].back());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i].first,
                  unit * static_cast<double>(d.timing.starts[w][i]), 1);
      // Wide enough for two digits, and no box covers the next.
      EXPECT_GE(found[i].second, 10);
      if (i > 0) {
        EXPECT_LE(found[i - 1].first + found[i - 1].second, found[i].first);
      }
    }
  }
  // Every box has its number.
  EXPECT_EQ(count(d.svg, "<text class=\"n\"") +
                count(d.svg, "<text class=\"n p\"") +
                count(d.svg, "<text class=\"s\"") +
                count(d.svg, "<text class=\"s p\""),
            2u * 32 * 64);
}

/// At that size each box has its words, whatever a scheme runs.
TEST(Svg, IsLegibleWithPairsHalvesRecomputesAndSteps) {
  auto of = [](const char *scheme, Concatenation how, Recompute recompute,
               bool split) {
    Case c = makeCase(scheme, 32, 64, {2, 4, 2, 2, 2}, split, choose(2, how));
    if (recompute != Recompute::None) {
      c.problem.recompute.assign(32, recompute);
      c.schedule = insertRecompute(c.problem, c.schedule);
    }
    return c;
  };
  for (const Case &c :
       {of("chimera", Concatenation::Direct, Recompute::Early, false),
        of("chimera", Concatenation::Direct, Recompute::Fused, true),
        of("chimera", Concatenation::Doubling, Recompute::Fused, false),
        of("chimera", Concatenation::FineTunedDoubling, Recompute::Early, true),
        of("chimera", Concatenation::Halving, Recompute::None, true),
        of("gpipe", Concatenation::Direct, Recompute::Early, true),
        of("1f1b", Concatenation::Direct, Recompute::Fused, true),
        of("pipedream", Concatenation::Direct, Recompute::Fused, true)}) {
    SCOPED_TRACE(nameOf(*c.scheme, 32, 64, c.options));
    std::string svg = draw(c).svg;
    size_t actions = 0, words = 0;
    for (const std::vector<Action> &row : c.schedule.workers)
      actions += row.size();
    for (const char *style : {"n", "n p", "s", "s p"})
      words += count(svg, "<text class=\"" + std::string(style) + "\"");
    EXPECT_EQ(words, actions);
  }
}

/// Pairs are so called, and named with a dash where there are two digits.
TEST(Svg, NamesWhatActionsCover) {
  std::string svg = draw(makeCase("chimera", 4, 16, {1, 2, 1, 1}, false,
                                  choose(2, Concatenation::Doubling)))
                        .svg;
  EXPECT_NE(
      svg.find("<title>forward of micro-batches 0 to 1, stage 0, pipeline "
               "0 (down), P0, time 0 to 2</title>"),
      std::string::npos);
  EXPECT_NE(svg.find(">0-1</text>"), std::string::npos);
  svg = draw(makeCase("chimera", 4, 4, {1, 2, 1, 1}, false,
                      choose(2, Concatenation::Halving)))
            .svg;
  EXPECT_NE(
      svg.find("<title>backward of part 1 of 2 of micro-batch 1, stage 3, "
               "pipeline 1 (up), P0, time 6 to 7</title>"),
      std::string::npos);
  EXPECT_NE(svg.find(">1b</text>"), std::string::npos);
}

/// Two of them, a line below what each worker repeats, and what a step takes.
TEST(Svg, ShowsStepsThatOverlap) {
  Drawing d = draw(makeCase("pipedream", 3, 3, {2, 4, 1, 1}));
  EXPECT_NE(d.svg.find("2 steps, which overlap; in the steady state one takes "
                       "18, bubble 0.0 %"),
            std::string::npos);
  EXPECT_EQ(count(d.svg, ">what each step repeats<"), 1u);
  // 3 workers and the legend.
  EXPECT_EQ(count(d.svg, "<rect class=\"body\""), 4u);
}

TEST(Svg, ShowsKindsAndDirectionsInItsLegend) {
  std::string svg = draw(makeCase("chimera", 4, 4, {1, 2, 1, 1})).svg;
  for (const char *name :
       {">forward, down<", ">forward, up<", ">backward, down<",
        ">backward, up<", ">bubble<", ">time<"})
    EXPECT_EQ(count(svg, name), 1u) << name;
  EXPECT_EQ(count(svg, ">P3<"), 2u); // at both ends of its row
  EXPECT_EQ(count(svg, "repeats"), 0u);
  EXPECT_EQ(count(svg, "gradient, "), 0u);
  svg = draw(makeCase("gpipe", 2, 2, {1, 2, 1, 1}, true)).svg;
  for (const char *name : {">input gradient, down<", ">weight gradient, down<"})
    EXPECT_EQ(count(svg, name), 1u) << name;
  EXPECT_EQ(count(svg, ", up<"), 0u);
  EXPECT_EQ(count(svg, ">backward"), 0u);
}

TEST(Svg, ShadesTheBubbleOfEveryWorker) {
  std::string svg = draw(makeCase("gpipe", 2, 2, {1, 2, 1, 1})).svg;
  EXPECT_NE(svg.find("P0: idle 3 of 9 (33.3 %), peak activations 2"),
            std::string::npos);
  EXPECT_EQ(count(svg, "class=\"bubble\""), 3u); // two rows and the legend
}

TEST(Svg, EscapesWhatXmlReserves) {
  std::string svg = draw(makeCase("gpipe", 1, 1), "<a> & \"b\"\x01").svg;
  EXPECT_NE(svg.find("&lt;a&gt; &amp; &quot;b&quot; <"), std::string::npos);
}

TEST(Svg, IsTheSameEveryTime) {
  EXPECT_EQ(draw(makeCase("chimera", 6, 12)).svg,
            draw(makeCase("chimera", 6, 12)).svg);
}

/// Times in nanoseconds are no wider, and ticks stay apart.
TEST(Svg, DoesNotGrowWithTheUnit) {
  std::string small = draw(makeCase("gpipe", 4, 4, {1, 2, 1, 1})).svg;
  std::string large =
      draw(makeCase("gpipe", 4, 4, {1000000000, 2000000000, 1, 1})).svg;
  std::regex width("<svg [^>]*width=\"([0-9.]+)\"");
  std::smatch a, b;
  ASSERT_TRUE(std::regex_search(small, a, width));
  ASSERT_TRUE(std::regex_search(large, b, width));
  EXPECT_EQ(a[1], b[1]);
  EXPECT_LT(count(large, "class=\"tick\""), 12u);
}

} // namespace
} // namespace chimera::schedule
