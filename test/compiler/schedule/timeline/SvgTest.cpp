//===- SvgTest.cpp - Pictures ---------------------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/Svg.h"

#include "compiler/schedule/Recompute.h"
#include "compiler/schedule/timeline/SvgLegend.h"
#include "compiler/schedule/timeline/SvgStyle.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>

namespace chimera::schedule {
namespace {

struct TimelineDrawing {
  Case c;
  Timing timing;
  std::string svg;
};

TimelineDrawing draw(Case c, const std::string &title = "title",
                     const Picture &picture = {}) {
  TimelineDrawing drawing{std::move(c), {}, {}};
  drawing.timing = simulate(drawing.c.problem, drawing.c.schedule);
  Timeline timeline{"p", title, drawing.c.problem, drawing.c.schedule,
                    drawing.timing};
  timeline.picture = picture;
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

/// The texts of one style, separated by blanks.
std::string words(const std::string &svg, const std::string &style) {
  std::regex line("<text class=\"" + style + "\"[^>]*>([^<]*)</text>");
  std::string found;
  for (std::sregex_iterator i(svg.begin(), svg.end(), line), end; i != end; ++i)
    found += (found.empty() ? "" : " ") + (*i)[1].str();
  return found;
}

/// Left edge and width of the boxes of a row, in order.
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
      // Boxes are wide enough for two digits, and none covers the next.
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

/// At that size each box has its text, for every kind of action.
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

/// PairsDrawing are labelled as pairs, with a dash if there are two-digit
/// numbers.
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

/// Shows two steps, a line below each worker's repeated body, and the time of a
/// step.
TEST(Svg, ShowsStepsThatOverlap) {
  TimelineDrawing d = draw(makeCase("pipedream", 3, 3, {2, 4, 1, 1}));
  EXPECT_NE(words(d.svg, "note")
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

/// The picture is not wider for times in nanoseconds, and marks do not overlap.
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

/// The width of the picture, and an upper limit for the end of each line of
/// text: no character is wider than 6.2 pixels at size 11 and 8.8 at size 15.
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

/// Text that is wider than the picture continues on the next line, and
/// everything below moves down.
TEST(Svg, ClipsNoWords) {
  std::string title = "a_pipeline_with_a_name: chimera {pipelines = 4, "
                      "concatenation = fine-tuned-doubling}, 4 stages, 8 "
                      "micro-batches, split_backward, recompute([0, 1] fused)";
  Case c = makeCase("pipedream", 4, 4,
                    {123456789012, 234567890123, 1, 1, 345678901234});
  c.problem.link = {{1234567890, 12345678, kMebibyte}};
  TimelineDrawing d = draw(c, title);
  EXPECT_EQ(words(d.svg, "title"), title);
  auto [width, most] = widths(d.svg);
  EXPECT_LE(most, width);
  EXPECT_GT(count(d.svg, "<text class=\"title\""), 1u);
  std::regex down("<g transform=\"translate\\(46 ([0-9.]+)\\)\">");
  std::smatch rows;
  ASSERT_TRUE(std::regex_search(d.svg, rows, down));
  EXPECT_GT(std::stod(rows[1]), 84);
}

/// gpipe with two stages and two micro-batches.
std::string drawIn(const char *unit, StageCost cost, int64_t perUnit = 1) {
  Case c = makeCase("gpipe", 2, 2, cost);
  Timing timing = simulate(c.problem, c.schedule);
  Timeline timeline{"p", "title", c.problem, c.schedule, timing};
  timeline.scale = {findTimeUnit(unit), perUnit};
  return renderSvg({&timeline, 1});
}

/// Marks and summary show large times in short form, for every unit.
TEST(Svg, CountsLargeTimesInLargerUnits) {
  std::string svg = drawIn("none", {100000000, 200000000, 1, 1});
  EXPECT_EQ(words(svg, "axis"), "0 100 200 300 400 500 600 700 800 900 "
                                "time in 10⁶");
  EXPECT_EQ(words(svg, "note")
                .find("makespan 900 × 10⁶ (forward 100 × 10⁶, "
                      "backward 200 × 10⁶, p2p 0) · bubble"),
            0u);
  // The exact time is there, too.
  EXPECT_NE(svg.find("time 100000000 to 200000000</title>"), std::string::npos);
  svg = drawIn("ns", {100000000, 200000000, 1, 1});
  EXPECT_EQ(words(svg, "axis"),
            "0 100 200 300 400 500 600 700 800 900 time in ms");
  EXPECT_EQ(words(svg, "note").find("makespan 900 ms (forward 100 ms, "), 0u);
  svg = drawIn("us", {1500, 3000, 1, 1});
  EXPECT_EQ(words(svg, "axis"), "0 2 4 6 8 10 12 time in ms");
  EXPECT_EQ(words(svg, "note").find("makespan 13.5 ms (forward 1500 us, "), 0u);
  svg = drawIn("us", {1, 2, 1, 1});
  EXPECT_EQ(words(svg, "axis"), "0 1 2 3 4 5 6 7 8 9 time in us");
}

/// The summary, the axis and all tooltips show times in units, for any number
/// of ticks in a unit.
TEST(Svg, CountsInUnitsIfTimesHaveFractions) {
  std::string svg = drawIn("us", {1, 2, 1, 1}, 2);
  EXPECT_EQ(words(svg, "note")
                .find("makespan 4.5 us (forward 0.5 us, backward "
                      "1 us, p2p 0 us) · bubble"),
            0u);
  EXPECT_EQ(words(svg, "axis"), "0 0.5 1 1.5 2 2.5 3 3.5 4 4.5 time in us");
  EXPECT_NE(svg.find("P0, time in us 0.5 to 1</title>"), std::string::npos);
  EXPECT_NE(svg.find("P0: idle 1.5 of 4.5 (33.3 %)"), std::string::npos);
  // A tick is an eighth of a unit. Marks are still at round numbers.
  EXPECT_EQ(words(drawIn("none", {1, 2, 1, 1}, 8), "axis"),
            "0 0.2 0.4 0.6 0.8 1 time");
  svg = drawIn("us", {100001, 200002, 1, 1}, 2);
  EXPECT_EQ(words(svg, "axis"), "0 50 100 150 200 250 300 350 400 450 "
                                "time in ms");
  EXPECT_NE(svg.find("P0, time in us 50000.5 to 100001</title>"),
            std::string::npos);
}

/// A name may be one word of letters that are twice as wide as most.
TEST(Svg, CutsWordsThatAreLongerThanTheirLine) {
  std::string svg = draw(makeCase("gpipe", 2, 2), std::string(300, 'W')).svg;
  std::string all = words(svg, "title");
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
  EXPECT_NE(words(svg, "title").find("é ö"), std::string::npos)
      << words(svg, "title");
}

/// The part of a picture with its first legend.
std::string legendPart(const std::string &svg) {
  size_t begin = svg.find("<g class=\"legend\"");
  return svg.substr(begin, svg.find("</g>", begin) - begin);
}

double numberAfter(const std::string &svg, const std::string &text) {
  size_t at = svg.find(text);
  EXPECT_NE(at, std::string::npos) << text;
  return std::stod(svg.substr(at + text.size()));
}

double pictureWidth(const std::string &svg) {
  return numberAfter(svg, "version=\"1.1\" width=\"");
}

struct Box {
  std::string style;
  double left, width;
};

/// The boxes of all actions.
std::vector<Box> allBoxes(const std::string &svg) {
  std::regex box("<rect class=\"(k\\d [cdu][0-9of]*)\" x=\"([0-9.]+)\" "
                 "width=\"([0-9.]+)\"");
  std::vector<Box> found;
  for (std::sregex_iterator i(svg.begin(), svg.end(), box), end; i != end; ++i)
    found.push_back({(*i)[1], std::stod((*i)[2]), std::stod((*i)[3])});
  return found;
}

/// Expects the boxes and names of a legend to be at most `width` pixels wide.
/// Returns the lower edge of the lowest box.
double expectInside(const std::string &legend, double width) {
  std::regex part("<(rect|text) class=\"([^\"]*)\" x=\"([0-9.]+)\" "
                  "y=\"([0-9.]+)\"(?: width=\"([0-9.]+)\"|>([^<]*)<)");
  double bottom = 0;
  for (std::sregex_iterator i(legend.begin(), legend.end(), part), end;
       i != end; ++i) {
    double right = std::stod((*i)[3]);
    if ((*i)[1] == "rect") {
      right += std::stod((*i)[5]);
      bottom = std::max(bottom, std::stod((*i)[4]) + 14);
    } else if ((*i)[2] == "note") {
      right += svg::kNoteCharacter * static_cast<double>((*i)[6].length());
    }
    EXPECT_LE(right, width) << (*i)[0];
  }
  EXPECT_GT(bottom, 0);
  return bottom;
}

/// Every legend is inside its picture and above the rows, however many entries
/// and chunks it has.
TEST(Svg, WrapsItsLegend) {
  std::vector<Case> cases;
  for (const Scheme &scheme : schemes())
    for (int32_t workers : {2, 4, 8})
      for (const Choice &choice : choices(scheme, workers))
        for (bool split : {false, true})
          if (workers == 4 || choice.options.table().empty())
            cases.push_back(makeCase(scheme.name, workers, workers,
                                     {1, 2, 1, 1, 1}, split, choice));
  for (int32_t chunks : {5, 8, 24})
    cases.push_back(makeCase("interleaved-1f1b", 2, 2, {1, 2, 1, 1, 1}, false,
                             {{}, chunks}));
  size_t most = 0;
  for (const Case &c : cases) {
    SCOPED_TRACE(nameOf(*c.scheme, c.problem.workers, c.problem.microBatches(),
                        c.choice));
    for (double cellWidth : {0, 2}) {
      std::string svg = draw(c, "title", {.cellWidth = cellWidth}).svg;
      std::string legend = legendPart(svg);
      double bottom = expectInside(legend, pictureWidth(svg) - 40);
      double top = numberAfter(legend, "translate(0 ");
      EXPECT_LE(top + bottom + 18, numberAfter(svg, "translate(46 "));
      most = std::max(most, static_cast<size_t>(bottom));
    }
  }
  EXPECT_GT(most, 40u) << "no legend has three lines";
}

/// A legend of hundred boxes in the narrowest picture.
TEST(Svg, BreaksEntriesOfItsLegend) {
  svg::LegendEntry entry{std::vector<svg::LegendBox>(100, {"k4 u0of100", "99"}),
                         "weight gradient, down, chunks 0 to 99"};
  svg::Legend legend(std::vector{entry, entry}, svg::kLeastWidth);
  std::string svg = legend.draw(0);
  EXPECT_EQ(count(svg, "<rect"), 200u);
  EXPECT_LE(expectInside(svg, svg::kLeastWidth), legend.height());
}

/// A picture names directions only if it has two.
TEST(Svg, NamesDirectionsOnlyIfThereAreTwo) {
  for (const Scheme &scheme : schemes())
    for (const Choice &choice : choices(scheme, 4)) {
      Case c = makeCase(scheme.name, 4, 4, {1, 2, 1, 1, 1}, false, choice);
      bool areTwo = std::ranges::any_of(c.problem.pipelines, &Pipeline::up);
      SCOPED_TRACE(nameOf(scheme, 4, 4, choice));
      for (bool up : {false, true}) {
        if (!areTwo && up)
          for (Pipeline &pipeline : c.problem.pipelines)
            pipeline.up = true;
        std::string svg = draw(c).svg;
        for (const char *word : {"down", "up"})
          EXPECT_EQ(std::regex_search(
                        svg, std::regex("\\b" + std::string(word) + "\\b")),
                    areTwo)
              << word;
      }
    }
}

/// Shades of one hue, with the number of the chunk in the legend and in
/// tooltips.
TEST(Svg, ShadesChunks) {
  TimelineDrawing d =
      draw(makeCase("interleaved-1f1b", 4, 8, {1, 2, 1, 1, 1}, false, {{}, 4}));
  EXPECT_EQ(words(d.svg, "note")
                    .find("forward, chunks 0 to 3 backward, chunks "
                          "0 to 3 bubble") == std::string::npos,
            false);
  EXPECT_EQ(words(legendPart(d.svg), "s") + words(legendPart(d.svg), "s p"),
            "0 01 2 3 1 2 3");
  EXPECT_EQ(count(d.svg, "forward of micro-batch 0, stage 9, chunk 2, pipeline "
                         "0, P1,"),
            1u);
  std::map<std::string, size_t> boxes;
  for (const Box &box : allBoxes(d.svg))
    ++boxes[box.style];
  EXPECT_EQ(boxes.size(), 8u);
  for (const auto &[style, number] : boxes) {
    EXPECT_EQ(number, 4u * 8) << style;
    std::string rule = "\n." + style + "{fill:#";
    rule[rule.find(' ')] = '.';
    EXPECT_EQ(count(d.svg, rule), 1u) << rule;
  }
}

/// The labels have the colours that SvgPaletteTest.cpp assumes.
TEST(Svg, HasBlackAndWhiteLabels) {
  std::string svg =
      draw(makeCase("interleaved-1f1b", 2, 2, {1, 2, 1, 1}, false, {{}, 2}))
          .svg;
  EXPECT_EQ(count(svg, "\n.n,.s{fill:#fff}\n"), 1u);
  EXPECT_EQ(count(svg, "\n.p{fill:#000}\n"), 1u);
}

/// Boxes are cut at the ends of the range, and legends have only what is there.
TEST(Svg, ShowsARangeOfTime) {
  for (const char *scheme : {"chimera", "zb-v", "pipedream", "gpipe"})
    for (double cellWidth : {0, 7}) {
      SCOPED_TRACE(scheme);
      const bool isV = scheme == std::string("zb-v");
      Case c = makeCase(scheme, 4, 8, {2, 4, 2, 2, 2}, isV, {{}, isV ? 2 : 1});
      Picture picture{.cellWidth = cellWidth, .from = 5, .to = 11};
      TimelineDrawing d = draw(std::move(c), "title", picture);
      const Timing &timing = d.timing;
      size_t shown = 0;
      for (size_t w = 0; w < 4; ++w)
        for (size_t i = 0; i < timing.starts[w].size(); ++i)
          shown += timing.starts[w][i] < 11 && timing.ends[w][i] > 5;
      std::vector<Box> boxes = allBoxes(d.svg);
      EXPECT_EQ(boxes.size(), shown);
      double plot = pictureWidth(d.svg) - 40 - 46 - 122;
      if (cellWidth > 0)
        plot = cellWidth * 6 / 2;
      for (const Box &box : boxes) {
        EXPECT_GE(box.left, 0);
        EXPECT_GT(box.width, 0);
        EXPECT_LE(box.left + box.width, plot + 0.02);
      }
      EXPECT_EQ(words(d.svg, "axis").substr(0, 2), "5 ");
      EXPECT_NE(words(d.svg, "note").find("only a part is shown"),
                std::string::npos);
    }
  Picture picture{.from = 0, .to = 4};
  std::string svg =
      draw(makeCase("gpipe", 4, 8, {1, 2, 1, 1}), "title", picture).svg;
  EXPECT_EQ(count(svg, ">forward<"), 1u);
  EXPECT_EQ(count(svg, ">backward<"), 0u);
}

struct Pair {
  explicit Pair(Picture picture)
      : left(makeCase("1f1b", 4, 8, {2, 4, 2, 2})),
        right(makeCase("zb-v", 4, 8, {1, 2, 1, 1}, true, {{}, 2})),
        leftTiming(simulate(left.problem, left.schedule)),
        rightTiming(simulate(right.problem, right.schedule)),
        timelines{{"p", "one", left.problem, left.schedule, leftTiming},
                  {"q", "two", right.problem, right.schedule, rightTiming}} {
    for (Timeline &timeline : timelines)
      timeline.picture = picture;
  }

  Case left, right;
  Timing leftTiming, rightTiming;
  std::vector<Timeline> timelines;
};

/// If a cell width or a range is given, a unit of time has the same width in
/// all timelines.
TEST(Svg, GivesAllPipelinesOneScale) {
  for (const Picture &picture :
       {Picture{.cellWidth = 10}, Picture{.from = 3, .to = 20}}) {
    Pair pair(picture);
    EXPECT_EQ(pictureError(pair.timelines), "");
    std::string svg = renderSvg(pair.timelines);
    double forward = 0, chunk = 0;
    for (const Box &box : allBoxes(svg)) {
      if (box.style == "k0 c")
        forward = std::max(forward, box.width + 1);
      if (box.style == "k0 c1of2")
        chunk = std::max(chunk, box.width + 1);
    }
    EXPECT_NEAR(forward, 2 * chunk, 0.05);
    if (picture.cellWidth > 0) {
      EXPECT_NEAR(chunk, 10, 0.02);
    }
  }
}

TEST(Svg, CanLeaveOutTheTitle) {
  std::string with = draw(makeCase("chimera", 4, 4), "title").svg;
  std::string without =
      draw(makeCase("chimera", 4, 4), "title", {.hasTitle = false}).svg;
  EXPECT_EQ(words(without, "title"), "");
  EXPECT_EQ(words(without, "note"), words(legendPart(without), "note"));
  EXPECT_EQ(numberAfter(legendPart(without), "translate(0 "), 0);
  EXPECT_EQ(numberAfter(with, "translate(46 ") - 46,
            numberAfter(without, "translate(46 "));
}

TEST(Svg, NamesWhatIsWrongWithAPicture) {
  auto errorOf = [](const Picture &picture) {
    return pictureError(Pair(picture).timelines);
  };
  EXPECT_EQ(errorOf({}), "");
  EXPECT_EQ(errorOf({.from = 65, .to = 100}), "");
  EXPECT_EQ(errorOf({.from = 66}),
            "expected a range of time that begins before 66, where the "
            "schedule ends, got one from 66");
  EXPECT_EQ(errorOf({.from = 5, .to = 5}),
            "expected a range of time that begins before 5, where it ends, got "
            "one from 5");
  EXPECT_EQ(errorOf({.cellWidth = 1000}),
            "expected rows of 1 to 30000 pixels, got 66000: choose another "
            "cell width or range of time");
  EXPECT_EQ(errorOf({.cellWidth = 1000, .to = 20}), "");
  Pair mixed({.to = 7});
  mixed.timelines[1].scale.unit = findTimeUnit("ms");
  EXPECT_EQ(pictureError(mixed.timelines),
            "expected pipelines with one unit of time in a picture with a cell "
            "width or a range of time, got none and ms");
  mixed.timelines[0].picture = {};
  EXPECT_EQ(pictureError(mixed.timelines), "");
  Pair slots({.from = 0.5, .to = 7});
  slots.timelines[0].slots = slots.timelines[1].slots = true;
  EXPECT_EQ(pictureError(slots.timelines),
            "expected a range of whole slots, got 0.5 to 7");
}

} // namespace
} // namespace chimera::schedule
