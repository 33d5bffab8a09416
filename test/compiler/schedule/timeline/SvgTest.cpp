//===- SvgTest.cpp - Pictures ---------------------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/model/Recompute.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "compiler/schedule/timeline/SvgLegend.h"
#include "compiler/schedule/timeline/SvgStyle.h"
#include "test/compiler/schedule/timeline/TimelineDrawing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>

namespace chimera::schedule {
namespace {

/// Left edge and width of the boxes of a worker's actions, in order.
std::vector<std::pair<double, double>> boxes(const std::string &svg,
                                             size_t worker) {
  std::regex box("micro-batch \\d+, stage \\d+, pipeline \\d+ \\(\\w+\\), P" +
                 std::to_string(worker) +
                 ", .*?<rect class=\"k\\d [cdu]\" x=\"([0-9.]+)\" "
                 "width=\"([0-9.]+)\"");
  std::vector<std::pair<double, double>> found;
  for (std::sregex_iterator i(svg.begin(), svg.end(), box), end; i != end; ++i)
    found.push_back({std::stod((*i)[1]), std::stod((*i)[2])});
  return found;
}

/// A picture of 32 workers and 64 micro-batches must be legible.
TEST(Svg, DrawsEveryActionWhereItRuns) {
  TimelineDrawing d = draw(makeCase("chimera", 32, 64, {1, 2, 1, 1}));
  EXPECT_EQ(count(d.svg, " of micro-batch "), 2u * 32 * 64);
  for (size_t w = 0; w < 32; ++w) {
    auto found = boxes(d.svg, w);
    ASSERT_EQ(found.size(), d.timing.starts[w].size());
    double unit =
        found.back().first / static_cast<double>(d.timing.starts[w].back());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i].first,
                  unit * static_cast<double>(d.timing.starts[w][i]), 1);
      // Boxes are wide enough for two digits, and do not overlap.
      EXPECT_GE(found[i].second, 10);
      if (i > 0) {
        EXPECT_LE(found[i - 1].first + found[i - 1].second, found[i].first);
      }
    }
  }
  // Every box has a label.
  EXPECT_EQ(count(d.svg, "<text class=\"n\"") +
                count(d.svg, "<text class=\"n p\"") +
                count(d.svg, "<text class=\"s\"") +
                count(d.svg, "<text class=\"s p\""),
            2u * 32 * 64);
}

/// With 32 workers and 64 micro-batches, every box has a label, for every kind
/// of action.
TEST(Svg, IsLegibleWithPairsHalvesRecomputesAndSteps) {
  auto of = [](const char *scheme, Concatenation how, Recompute recompute,
               bool split) {
    Case c =
        makeCase(scheme, 32, 64, {2, 4, 2, 2, 2}, split, chimeraWith(2, how));
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
    SCOPED_TRACE(nameOf(*c.scheme, 32, 64, c.choice));
    std::string svg = draw(c).svg;
    size_t actions = 0, words = 0;
    for (const std::vector<Action> &row : c.schedule.workers)
      actions += row.size();
    for (const char *style : {"n", "n p", "s", "s p"})
      words += count(svg, "<text class=\"" + std::string(style) + "\"");
    EXPECT_EQ(words, actions);
  }
}

/// An action over two micro-batches is labelled with both, with a dash between
/// them if some micro-batches have two digits.
TEST(Svg, NamesWhatActionsCover) {
  std::string svg = draw(makeCase("chimera", 4, 16, {1, 2, 1, 1}, false,
                                  chimeraWith(2, Concatenation::Doubling)))
                        .svg;
  EXPECT_NE(
      svg.find("<title>forward of micro-batches 0 to 1, stage 0, pipeline "
               "0 (down), P0, time 0 to 2</title>"),
      std::string::npos);
  EXPECT_NE(svg.find(">0-1</text>"), std::string::npos);
  svg = draw(makeCase("chimera", 4, 4, {1, 2, 1, 1}, false,
                      chimeraWith(2, Concatenation::Halving)))
            .svg;
  EXPECT_NE(
      svg.find("<title>backward of part 1 of 2 of micro-batch 1, stage 3, "
               "pipeline 1 (up), P0, time 6 to 7</title>"),
      std::string::npos);
  EXPECT_NE(svg.find(">1b</text>"), std::string::npos);
}

/// If steps overlap, the picture has two steps, a line below the body that each
/// worker repeats, and the time of a step.
TEST(Svg, ShowsStepsThatOverlap) {
  TimelineDrawing d = draw(makeCase("pipedream", 3, 3, {2, 4, 1, 1}));
  EXPECT_NE(textsWithClass(d.svg, "note")
                .find("2 steps, which overlap; in the steady state one takes "
                      "18, bubble 0.0 %"),
            std::string::npos);
  EXPECT_EQ(count(d.svg, ">repeated in each step<"), 1u);
  // There is one line for each of the 3 workers, and one in the legend.
  EXPECT_EQ(count(d.svg, "<rect class=\"body\""), 4u);
  EXPECT_EQ(count(d.svg, " height=\"4\""), 4u);
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
  for (const char *name : {">input gradient<", ">weight gradient<"})
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

TEST(Svg, EscapesReservedCharacters) {
  std::string svg = draw(makeCase("gpipe", 1, 1), "<a> & \"b\"\x01").svg;
  EXPECT_NE(svg.find("&lt;a&gt; &amp; &quot;b&quot; <"), std::string::npos);
}

TEST(Svg, IsTheSameEveryTime) {
  EXPECT_EQ(draw(makeCase("chimera", 6, 12)).svg,
            draw(makeCase("chimera", 6, 12)).svg);
}

/// Times in nanoseconds do not make the picture wider, and the marks of the
/// axis do not overlap.
TEST(Svg, DoesNotGrowWithTheUnit) {
  std::string small = draw(makeCase("gpipe", 4, 4, {1, 2, 1, 1})).svg;
  std::string large =
      draw(makeCase("gpipe", 4, 4, {1000000000, 2000000000, 1, 1})).svg;
  std::regex width("<svg [^>]*width=\"([0-9.]+)\"");
  std::smatch a, b;
  ASSERT_TRUE(std::regex_search(small, a, width));
  ASSERT_TRUE(std::regex_search(large, b, width));
  EXPECT_EQ(a[1], b[1]);
  EXPECT_LT(count(large, "class=\"mark\""), 12u);
}

/// The width of the picture, and an upper limit for the right end of its text.
/// A character is at most 6.2 pixels wide at size 11 and 8.8 at size 15.
std::pair<double, double> widths(const std::string &svg) {
  std::regex width("<svg [^>]*width=\"([0-9.]+)\"");
  std::smatch found;
  EXPECT_TRUE(std::regex_search(svg, found, width));
  std::regex line("<text class=\"(title|note)\" x=\"([0-9.]+)\" "
                  "y=\"[0-9.]+\">([^<]*)</text>");
  double most = 0;
  for (std::sregex_iterator i(svg.begin(), svg.end(), line), end; i != end;
       ++i) {
    double character = (*i)[1] == "title" ? 8.8 : 6.2;
    // Count characters, not bytes.
    std::string text = (*i)[3];
    auto characters = std::ranges::count_if(
        text, [](char byte) { return (byte & 0xc0) != 0x80; });
    most = std::max(most, 20 + std::stod((*i)[2]) +
                              character * static_cast<double>(characters));
  }
  return {std::stod(found[1]), most};
}

/// Text that is wider than the picture is broken into lines. Everything below
/// it moves down.
TEST(Svg, ClipsNoWords) {
  std::string title = "a_pipeline_with_a_name: chimera {pipelines = 4, "
                      "concatenation = fine-tuned-doubling}, 4 stages, 8 "
                      "micro-batches, split_backward, recompute([0, 1] fused)";
  Case c = makeCase("pipedream", 4, 4,
                    {123456789012, 234567890123, 1, 1, 345678901234});
  c.problem.link = {{1234567890, 12345678, kMebibyte}};
  TimelineDrawing d = draw(c, title);
  EXPECT_EQ(textsWithClass(d.svg, "title"), title);
  auto [width, most] = widths(d.svg);
  EXPECT_LE(most, width);
  EXPECT_GT(count(d.svg, "<text class=\"title\""), 1u);
  std::regex down("<g transform=\"translate\\(46 ([0-9.]+)\\)\">");
  std::smatch rows;
  ASSERT_TRUE(std::regex_search(d.svg, rows, down));
  EXPECT_GT(std::stod(rows[1]), 84);
}

/// A picture of gpipe with two stages and two micro-batches, with times in
/// `unit`.
std::string drawIn(const char *unit, StageCost cost, int64_t perUnit = 1) {
  Case c = makeCase("gpipe", 2, 2, cost);
  Timing timing = simulate(c.problem, c.schedule);
  Timeline timeline{"p", "title", c.problem, c.schedule, timing};
  timeline.scale = {findTimeUnit(unit), perUnit};
  return renderSvg({&timeline, 1});
}

/// The axis and the summary show large times in short form, for every unit.
TEST(Svg, CountsLargeTimesInLargerUnits) {
  std::string svg = drawIn("none", {100000000, 200000000, 1, 1});
  EXPECT_EQ(textsWithClass(svg, "axis"),
            "0 100 200 300 400 500 600 700 800 900 "
            "time in 10⁶");
  EXPECT_EQ(textsWithClass(svg, "note")
                .find("makespan 900 × 10⁶ (forward 100 × 10⁶, "
                      "backward 200 × 10⁶, p2p 0) · bubble"),
            0u);
  // The tooltip has the exact time.
  EXPECT_NE(svg.find("time 100000000 to 200000000</title>"), std::string::npos);
  svg = drawIn("ns", {100000000, 200000000, 1, 1});
  EXPECT_EQ(textsWithClass(svg, "axis"),
            "0 100 200 300 400 500 600 700 800 900 time in ms");
  EXPECT_EQ(
      textsWithClass(svg, "note").find("makespan 900 ms (forward 100 ms, "),
      0u);
  svg = drawIn("us", {1500, 3000, 1, 1});
  EXPECT_EQ(textsWithClass(svg, "axis"), "0 2 4 6 8 10 12 time in ms");
  EXPECT_EQ(
      textsWithClass(svg, "note").find("makespan 13.5 ms (forward 1500 us, "),
      0u);
  svg = drawIn("us", {1, 2, 1, 1});
  EXPECT_EQ(textsWithClass(svg, "axis"), "0 1 2 3 4 5 6 7 8 9 time in us");
}

/// The summary, the axis and all tooltips show times in units, for any number
/// of ticks in a unit.
TEST(Svg, CountsInUnitsIfTimesHaveFractions) {
  std::string svg = drawIn("us", {1, 2, 1, 1}, 2);
  EXPECT_EQ(textsWithClass(svg, "note")
                .find("makespan 4.5 us (forward 0.5 us, backward "
                      "1 us, p2p 0 us) · bubble"),
            0u);
  EXPECT_EQ(textsWithClass(svg, "axis"),
            "0 0.5 1 1.5 2 2.5 3 3.5 4 4.5 time in us");
  EXPECT_NE(svg.find("P0, time in us 0.5 to 1</title>"), std::string::npos);
  EXPECT_NE(svg.find("P0: idle 1.5 of 4.5 (33.3 %)"), std::string::npos);
  // A unit has eight ticks here. The marks are at round numbers of units.
  EXPECT_EQ(textsWithClass(drawIn("none", {1, 2, 1, 1}, 8), "axis"),
            "0 0.2 0.4 0.6 0.8 1 time");
  svg = drawIn("us", {100001, 200002, 1, 1}, 2);
  EXPECT_EQ(textsWithClass(svg, "axis"), "0 50 100 150 200 250 300 350 400 450 "
                                         "time in ms");
  EXPECT_NE(svg.find("P0, time in us 50000.5 to 100001</title>"),
            std::string::npos);
}

/// A name may be one long word of wide letters. It is broken within the word.
TEST(Svg, CutsWordsThatAreLongerThanTheirLine) {
  std::string svg = draw(makeCase("gpipe", 2, 2), std::string(300, 'W')).svg;
  std::string all = textsWithClass(svg, "title");
  size_t longest = 0;
  for (size_t at = 0, end = 0; at < all.size(); at = end + 1) {
    end = std::min(all.find(' ', at), all.size());
    longest = std::max(longest, end - at);
  }
  EXPECT_LE(20 + 2 * 8.8 * static_cast<double>(longest), widths(svg).first);
  std::erase(all, ' ');
  EXPECT_EQ(all, std::string(300, 'W'));
  // Lines break between characters, not between bytes.
  svg = draw(makeCase("gpipe", 2, 2), "a " + std::string(34, 'n') + "éö").svg;
  EXPECT_NE(textsWithClass(svg, "title").find("é ö"), std::string::npos)
      << textsWithClass(svg, "title");
}

} // namespace
} // namespace chimera::schedule
