//===- Svg.cpp - A schedule as a picture ----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/Svg.h"

#include "compiler/schedule/text/Magnitude.h"
#include "compiler/schedule/text/SvgText.h"
#include "compiler/schedule/timeline/SvgHeading.h"
#include "compiler/schedule/timeline/SvgRow.h"
#include "compiler/schedule/timeline/SvgScale.h"
#include "compiler/schedule/timeline/SvgStyle.h"

#include <algorithm>
#include <set>

namespace chimera::schedule {

namespace {

using namespace svg;

// Lengths in pixels.
constexpr double kNamesWidth = 46;  ///< worker names, left of the rows
constexpr double kNamesAgain = 32;  ///< worker names, left of the numbers
constexpr double kIdleWidth = 46;   ///< idle shares
constexpr double kPeakWidth = 34;   ///< peak activations
constexpr double kRightMargin = 10; ///< right of the rows and all numbers

/// The drawing of one timeline. Its upper left corner is (0, 0).
class TimelineDrawing {
public:
  /// `isOneOfSeveral`: the picture has more timelines.
  TimelineDrawing(const Timeline &timeline, const Axis &axis,
                  bool isOneOfSeveral)
      : timeline(timeline), timing(timeline.timing),
        workers(timeline.schedule.workers.size()), axis(axis),
        palette(timeline.problem), rows(timeline, this->axis, palette),
        heading(timeline.picture.hasTitle ? timeline.title
                : isOneOfSeveral          ? timeline.name
                                          : "",
                timeline.picture.hasTitle ? summary() : "", legend(), width()) {
  }
  TimelineDrawing(const TimelineDrawing &) = delete;

  double width() const {
    return std::max(kNamesWidth + axis.plot + peakEnd() + kRightMargin,
                    kLeastWidth);
  }
  double height() const {
    return heading.height() + kRow * static_cast<double>(workers) + kAxis;
  }

  std::string rules() const { return palette.rules(); }
  std::string draw() const {
    std::string svg = heading.draw() + "<g transform=\"translate(" +
                      svgNumber(kNamesWidth) + " " +
                      svgNumber(heading.height()) + ")\">\n";
    for (size_t w = 0; w < workers; ++w)
      svg += frame(w);
    svg += drawAxis(timeline, axis, kRow * static_cast<double>(workers)) +
           headings();
    for (size_t w = 0; w < workers; ++w)
      svg += rows.draw(w, kRow * static_cast<double>(w));
    return svg + "</g>\n";
  }

private:
  // The right edges of the columns right of the rows, from the end of the rows.
  // A column that is left out has no width.
  double namesEnd() const {
    const Picture &picture = timeline.picture;
    return picture.hasIdle || picture.hasPeak ? kNamesAgain : 0;
  }
  double idleEnd() const {
    return namesEnd() + (timeline.picture.hasIdle ? kIdleWidth : 0);
  }
  double peakEnd() const {
    return idleEnd() + (timeline.picture.hasPeak ? kPeakWidth : 0);
  }

  /// The texts right of the rows that have their base line at `y`.
  std::string numbers(double y, const std::string &worker,
                      const std::string &idle, const std::string &peak) const {
    std::string svg;
    auto add = [&](bool isShown, const char *style, double end,
                   const std::string &content) {
      if (isShown && !content.empty())
        svg += text(style, axis.plot + end, y, content);
    };
    add(namesEnd() > 0, "worker", namesEnd(), worker);
    add(timeline.picture.hasIdle, "figure", idleEnd(), idle);
    add(timeline.picture.hasPeak, "figure", peakEnd(), peak);
    return svg;
  }

  /// The headings of the columns right of the rows, each with a tooltip.
  std::string headings() const {
    std::string svg;
    if (timeline.picture.hasIdle)
      svg += withTooltip("share of the time until the last action ends, in "
                         "which the worker runs no action",
                         numbers(-6, "", "idle", ""));
    if (timeline.picture.hasPeak)
      svg += withTooltip("the largest number of micro-batches whose "
                         "activations the worker has at once",
                         numbers(-6, "", "", "peak"));
    return svg;
  }

  Legend legend() const {
    const Timeline *shown = &timeline;
    return Legend(legendOf({&shown, 1}, palette, axis), width());
  }

  std::string exact(int64_t ticks) const {
    return decimalNumber(ticks, timeline.scale.perUnit);
  }

  /// The line below the title. Its times are rounded; tooltips have the exact
  /// times.
  std::string summary() const {
    const TimeScale &scale = timeline.scale;
    std::string times =
        timeline.slots ? "one slot each"
                       : describeTimes(timeline.problem, scale, Digits::Short);
    std::string steps = describeSteps(timeline.problem, timeline.schedule,
                                      scale, Digits::Short);
    return "makespan " +
           shortTime(static_cast<double>(timing.makespan), scale) + " (" +
           times + ") · bubble " + percent(timing.bubbleRatio()) +
           " of the makespan" + (steps.empty() ? "" : " · " + steps) +
           (timeline.syncAndUpdate ? " · " + describeStep(timeline) : "") +
           (isCut() ? " · only a part is shown" : "");
  }

  bool isCut() const {
    return axis.begin > 0 || axis.end < static_cast<double>(timeline.end());
  }

  /// A hatched row with the worker's name on its left, and its numbers on its
  /// right.
  std::string frame(size_t w) const {
    double share = static_cast<double>(timing.idle[w]) /
                   static_cast<double>(timing.makespan);
    std::string name = "P" + std::to_string(w);
    std::string peak = std::to_string(timing.peakActivations[w]);
    double x = axis.xOf(0);
    double y = kRow * static_cast<double>(w), base = y + kRow / 2 + 4;
    std::string messages;
    if (timeline.occupations && !(*timeline.occupations)[w].empty())
      messages =
          ", of it for messages " + exact(totalsOf(*timeline.occupations)[w]);
    return RowDrawer::drawBubble(name + ": idle " + exact(timing.idle[w]) +
                                     " of " + exact(timing.makespan) + " (" +
                                     percent(share) + ")" + messages +
                                     ", peak activations " + peak,
                                 x, y, axis.xOf(timeline.end()) - x) +
           text("worker", -10, base, name) +
           numbers(base, name, percent(share), peak);
  }

  const Timeline &timeline;
  const Timing &timing;
  size_t workers;
  Axis axis;
  Palette palette;
  RowDrawer rows;
  Heading heading;
};

} // namespace

static std::vector<Panel> panelsOf(std::span<const Timeline> timelines) {
  std::vector<Panel> panels;
  for (const Timeline &timeline : timelines)
    panels.push_back({&timeline, timeline.end()});
  return panels;
}

std::string pictureError(std::span<const Timeline> timelines) {
  return errorOf(panelsOf(timelines));
}

std::string renderSvg(std::span<const Timeline> timelines) {
  double width = 0, height = kMargin;
  std::string body;
  std::set<std::string> rules;
  std::vector<Axis> axes = axesOf(panelsOf(timelines));
  for (size_t i = 0; i < timelines.size(); ++i) {
    TimelineDrawing drawing(timelines[i], axes[i], timelines.size() > 1);
    body += "<g transform=\"translate(" + svgNumber(kMargin) + " " +
            svgNumber(height) + ")\">\n" + drawing.draw() + "</g>\n";
    width = std::max(width, drawing.width());
    height += drawing.height() + kMargin;
    rules.insert(drawing.rules());
  }
  std::string all;
  for (const std::string &each : rules)
    all += each;
  return document(width + 2 * kMargin, height, all, body);
}

} // namespace chimera::schedule
