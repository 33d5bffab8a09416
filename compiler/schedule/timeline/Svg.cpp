//===- Svg.cpp - A schedule as a picture ----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/Svg.h"

#include "compiler/schedule/Magnitude.h"
#include "compiler/schedule/SvgText.h"
#include "compiler/schedule/timeline/SvgAxis.h"
#include "compiler/schedule/timeline/SvgLegend.h"
#include "compiler/schedule/timeline/SvgRow.h"
#include "compiler/schedule/timeline/SvgStyle.h"

#include <algorithm>

namespace chimera::schedule {

namespace {

using namespace svg;

// Lengths in pixels.
constexpr double kLabels = 46;        ///< worker names, left of the rows
constexpr double kNumbersWidth = 122; ///< name, idle, peak: right of the rows

/// The drawing of one timeline. Its upper left corner is (0, 0).
class TimelineDrawing {
public:
  explicit TimelineDrawing(const Timeline &timeline)
      : timeline(timeline), timing(timeline.timing),
        workers(timeline.schedule.workers.size()),
        plot(plotWidth(timeline, timeline.end())),
        rows(timeline, plot / static_cast<double>(timeline.end())),
        legend(legendOf(timeline)),
        heading(timeline.title, summary(), width()) {}

  double width() const {
    return std::max(kLabels + plot + kNumbersWidth, widthOf(legend));
  }
  double height() const {
    return heading.height() + kRow * static_cast<double>(workers) + kAxis;
  }

  std::string draw() const {
    std::string svg =
        heading.draw() + drawLegend(legend, heading.height() - 38);
    svg += "<g transform=\"translate(" + svgNumber(kLabels) + " " +
           svgNumber(heading.height()) + ")\">\n";
    for (size_t w = 0; w < workers; ++w)
      svg += frame(w);
    svg += drawAxis(timeline, timeline.end(), plot,
                    kRow * static_cast<double>(workers)) +
           text("figure", plot + 78, -6, "idle") +
           text("figure", plot + 112, -6, "peak");
    for (size_t w = 0; w < workers; ++w)
      svg += rows.draw(w, kRow * static_cast<double>(w));
    return svg + "</g>\n";
  }

private:
  std::string exact(int64_t ticks) const {
    return exactNumber(ticks, timeline.scale.perUnit);
  }

  /// The line below the title. Its times are rounded; tooltips have the exact
  /// ones.
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
           (timeline.syncAndUpdate ? " · " + describeStep(timeline) : "");
  }

  /// A hatched row with its worker's name at both ends, idle time and peak.
  std::string frame(size_t w) const {
    double share = static_cast<double>(timing.idle[w]) /
                   static_cast<double>(timing.makespan);
    std::string name = "P" + std::to_string(w);
    std::string peak = std::to_string(timing.peakActivations[w]);
    double y = kRow * static_cast<double>(w), base = y + kRow / 2 + 4;
    std::string messages;
    if (timeline.occupations && !(*timeline.occupations)[w].empty())
      messages =
          ", of it for messages " + exact(totalsOf(*timeline.occupations)[w]);
    return RowDrawer::drawBubble(name + ": idle " + exact(timing.idle[w]) +
                                     " of " + exact(timing.makespan) + " (" +
                                     percent(share) + ")" + messages +
                                     ", peak activations " + peak,
                                 /*x=*/0, y, plot) +
           text("worker", -10, base, name) +
           text("worker", plot + 32, base, name) +
           text("figure", plot + 78, base, percent(share)) +
           text("figure", plot + 112, base, peak);
  }

  const Timeline &timeline;
  const Timing &timing;
  size_t workers;
  double plot; ///< width in pixels
  RowDrawer rows;
  std::vector<LegendEntry> legend;
  Heading heading;
};

} // namespace

std::string renderSvg(std::span<const Timeline> timelines) {
  double width = 0, height = kMargin;
  std::string body;
  for (const Timeline &timeline : timelines) {
    TimelineDrawing drawing(timeline);
    body += "<g transform=\"translate(" + svgNumber(kMargin) + " " +
            svgNumber(height) + ")\">\n" + drawing.draw() + "</g>\n";
    width = std::max(width, drawing.width());
    height += drawing.height() + kMargin;
  }
  width += 2 * kMargin;
  return document(width, height, body);
}

} // namespace chimera::schedule
