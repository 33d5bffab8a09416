//===- SvgPictureTest.cpp - Legends, shades and options of pictures -------===//
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

/// The text of the first legend of a picture.
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

/// The boxes of all actions of a picture.
std::vector<Box> allBoxes(const std::string &svg) {
  std::regex box("<rect class=\"(k\\d [cdu][0-9of]*)\" x=\"([0-9.]+)\" "
                 "width=\"([0-9.]+)\"");
  std::vector<Box> found;
  for (std::sregex_iterator i(svg.begin(), svg.end(), box), end; i != end; ++i)
    found.push_back({(*i)[1], std::stod((*i)[2]), std::stod((*i)[3])});
  return found;
}

/// Expects all boxes and names of a legend to end within `width` pixels.
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

/// With any number of entries and chunks, a legend is inside its picture and
/// above the rows.
TEST(SvgPicture, WrapsItsLegend) {
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

/// Two legend entries, each with a hundred boxes, in the narrowest picture.
TEST(SvgPicture, BreaksEntriesOfItsLegend) {
  svg::LegendEntry entry{std::vector<svg::LegendBox>(100, {"k4 u0of100", "99"}),
                         "weight gradient, down, chunks 0 to 99"};
  svg::Legend legend(std::vector{entry, entry}, svg::kLeastWidth);
  std::string svg = legend.draw(0);
  EXPECT_EQ(count(svg, "<rect"), 200u);
  EXPECT_LE(expectInside(svg, svg::kLeastWidth), legend.height());
}

/// A picture names directions only if it has two.
TEST(SvgPicture, NamesDirectionsOnlyIfThereAreTwo) {
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

/// The chunks of a worker have shades of one hue. The legend and the tooltips
/// have the numbers of the chunks.
TEST(SvgPicture, ShadesChunks) {
  TimelineDrawing d =
      draw(makeCase("interleaved-1f1b", 4, 8, {1, 2, 1, 1, 1}, false, {{}, 4}));
  EXPECT_NE(textsWithClass(d.svg, "note")
                .find("forward, chunks 0 to 3 backward, chunks 0 to 3 "
                      "micro-batch 0 of chunks 1 and 2 bubble"),
            std::string::npos);
  EXPECT_EQ(textsWithClass(legendPart(d.svg), "s"), "0 0");
  EXPECT_EQ(textsWithClass(legendPart(d.svg), "s p"), "1 2 3 1 2 3 0' 0'2");
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

/// If labels mark chunks, the legend explains the marks.
TEST(SvgPicture, ExplainsTheMarksOfChunks) {
  auto legend = [](int32_t chunks, const Picture &picture = {}) {
    return legendPart(draw(makeCase("interleaved-1f1b", 2, 2, {1, 2, 1, 1},
                                    false, {{}, chunks}),
                           "title", picture)
                          .svg);
  };
  EXPECT_EQ(count(legend(1), "micro-batch"), 0u);
  EXPECT_EQ(count(legend(2), ">0'</text>"), 1u);
  EXPECT_EQ(count(legend(2), ">micro-batch 0 of chunk 1</text>"), 1u);
  // Before time 2, only forwards of chunk 0 run, which have no mark.
  EXPECT_EQ(count(legend(2, {.to = 2}), "micro-batch"), 0u);
}

/// The labels have the colours that SvgPaletteTest.cpp assumes.
TEST(SvgPicture, HasBlackAndWhiteLabels) {
  std::string svg =
      draw(makeCase("interleaved-1f1b", 2, 2, {1, 2, 1, 1}, false, {{}, 2}))
          .svg;
  EXPECT_EQ(count(svg, "\n.n,.s{fill:#fff}\n"), 1u);
  EXPECT_EQ(count(svg, "\n.p{fill:#000}\n"), 1u);
}

/// If a picture shows only a range of time, boxes are cut at its ends. The
/// legend has only the kinds of actions that are in the range.
TEST(SvgPicture, ShowsARangeOfTime) {
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
      EXPECT_EQ(textsWithClass(d.svg, "axis").substr(0, 2), "5 ");
      EXPECT_NE(textsWithClass(d.svg, "note").find("only a part is shown"),
                std::string::npos);
    }
  Picture picture{.from = 0, .to = 4};
  std::string svg =
      draw(makeCase("gpipe", 4, 8, {1, 2, 1, 1}), "title", picture).svg;
  EXPECT_EQ(count(svg, ">forward<"), 1u);
  EXPECT_EQ(count(svg, ">backward<"), 0u);
}

struct Pair {
  explicit Pair(Picture picture, int64_t forward = 2)
      : left(makeCase("1f1b", 4, 8, {forward, 2 * forward, 1, 1})),
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

/// A unit of time has the same width in the timelines of all pipelines.
TEST(SvgPicture, GivesAllPipelinesOneScale) {
  for (const Picture &picture :
       {Picture{}, Picture{.cellWidth = 10}, Picture{.from = 3, .to = 20}}) {
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

/// If one timeline is much longer than the other, the picture is still not too
/// wide for viewers. Timelines with different units have different scales.
TEST(SvgPicture, IsNoWiderThanViewersShow) {
  Pair pair({}, 20000);
  EXPECT_NEAR(pictureWidth(renderSvg(pair.timelines)), 12000 + 40 + 46 + 122,
              0.1);
  pair.timelines[0].scale.unit = findTimeUnit("ms");
  EXPECT_LT(pictureWidth(renderSvg(pair.timelines)), 4000);
}

TEST(SvgPicture, CanLeaveOutTheTitle) {
  std::string with = draw(makeCase("chimera", 4, 4), "title").svg;
  std::string without =
      draw(makeCase("chimera", 4, 4), "title", {.hasTitle = false}).svg;
  EXPECT_EQ(textsWithClass(without, "title"), "");
  EXPECT_EQ(textsWithClass(without, "note"),
            textsWithClass(legendPart(without), "note"));
  EXPECT_EQ(numberAfter(legendPart(without), "translate(0 "), 0);
  EXPECT_EQ(numberAfter(with, "translate(46 ") - 46,
            numberAfter(without, "translate(46 "));
}

/// Without titles, each of several timelines has its name above its legend.
TEST(SvgPicture, NamesEachOfSeveralTimelines) {
  std::string svg = renderSvg(Pair({.hasTitle = false}).timelines);
  EXPECT_EQ(textsWithClass(svg, "title"), "p q");
  EXPECT_EQ(textsWithClass(renderSvg(Pair({}).timelines), "title"), "one two");
  EXPECT_GT(numberAfter(legendPart(svg), "translate(0 "), 0);
}

/// A column of numbers that is left out takes no width.
TEST(SvgPicture, CanLeaveOutTheNumbers) {
  Case c = makeCase("1f1b", 4, 8);
  auto numbers = [&](bool hasIdle, bool hasPeak) {
    return draw(c, "title", {.hasIdle = hasIdle, .hasPeak = hasPeak}).svg;
  };
  const std::string all = numbers(true, true);
  EXPECT_EQ(textsWithClass(all, "worker"), "P0 P0 P1 P1 P2 P2 P3 P3");
  EXPECT_EQ(textsWithClass(numbers(false, true), "figure"), "4 3 2 1 peak");
  EXPECT_EQ(textsWithClass(numbers(true, false), "figure"),
            "27.3 % 27.3 % 27.3 % 27.3 % idle");
  const std::string none = numbers(false, false);
  EXPECT_EQ(textsWithClass(none, "figure"), "");
  EXPECT_EQ(textsWithClass(none, "worker"), "P0 P1 P2 P3");
  EXPECT_EQ(count(none, ", peak activations 4</title>"), 1u);
  const double width = pictureWidth(all);
  EXPECT_EQ(pictureWidth(numbers(false, true)), width - 46);
  EXPECT_EQ(pictureWidth(numbers(true, false)), width - 34);
  EXPECT_EQ(pictureWidth(none), width - 46 - 34 - 32);
}

TEST(SvgPicture, NamesWhatIsWrongWithAPicture) {
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
