//===- SvgScale.cpp - The time and the size of a picture ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/SvgScale.h"

#include "compiler/schedule/timeline/SvgRow.h"
#include "compiler/schedule/timeline/SvgStyle.h"

#include <charconv>
#include <cmath>
#include <map>

namespace chimera::schedule::svg {

// Lengths in pixels.
/// The least width of the plot with the longest range of time.
static constexpr double kLeastPlot = 460;
/// The desired width of the shortest action. If the plot would then be wider
/// than kWide, it is only as wide as the labels of all actions need, but at
/// least kWide and at most kWidest.
static constexpr double kCell = 26;
static constexpr double kWide = 3600, kWidest = 12000;
/// The least average width of actions. The limits kWide and kWidest do not make
/// actions narrower than this on average.
static constexpr double kLeastBox = 3;
/// The limit of a plot whose Picture has a cell width. Image formats and
/// viewers have limits near 32767.
static constexpr double kWidestChosen = 30000;

/// Calls `function(duration, action)` for each action that is shown. `duration`
/// is in ticks and at least 1.
template <typename Function>
static void forEachShown(const Timeline &timeline, const Axis &axis,
                         Function function) {
  for (size_t w = 0; w < timeline.schedule.workers.size(); ++w)
    for (size_t i = 0; i < timeline.schedule.workers[w].size(); ++i)
      if (axis.shows(timeline.timing.starts[w][i], timeline.timing.ends[w][i]))
        function(std::max<int64_t>(timeline.duration(w, i), 1),
                 timeline.schedule.workers[w][i]);
}

/// The width of a plot in which the boxes are readable.
static double readableWidth(const Timeline &timeline, const Axis &axis) {
  int64_t shortest = timeline.timing.makespan;
  double legible = 0; // pixels per tick
  size_t most = 1;
  forEachShown(timeline, axis, [&](int64_t duration, const Action &action) {
    shortest = std::min(shortest, duration);
    legible =
        std::max(legible, labelWidth(timeline, action, kDigits.back().first) /
                              static_cast<double>(duration));
  });
  for (const std::vector<Action> &row : timeline.schedule.workers)
    most = std::max(most, row.size());
  double length = axis.end - axis.begin;
  double part = length / std::max(static_cast<double>(timeline.end()), length);
  double ideal = kCell * length / static_cast<double>(shortest);
  double least = kLeastBox * static_cast<double>(most) * part;
  // Make the plot a little wider than the labels need, so that rounding does
  // not hide a label.
  double enough = std::min(legible * length * 1.0001, kWidest);
  return std::max({least, std::min(ideal, kWide), std::min(ideal, enough)});
}

/// A time of a panel, in the unit of the panel.
static double unitsOf(const Panel &panel, int64_t ticks) {
  return panel.timeline->scale.units(static_cast<double>(ticks));
}

/// The largest end of all panels, each in the unit of its panel.
static double longestOf(std::span<const Panel> panels) {
  double longest = 0;
  for (const Panel &panel : panels)
    longest = std::max(longest, unitsOf(panel, panel.end));
  return longest;
}

/// The shortest duration of an action in all panels, each in the unit of its
/// panel.
static double shortestOf(std::span<const Panel> panels) {
  double shortest = longestOf(panels);
  for (const Panel &panel : panels)
    for (size_t w = 0; w < panel.timeline->schedule.workers.size(); ++w)
      for (size_t i = 0; i < panel.timeline->schedule.workers[w].size(); ++i)
        shortest = std::min(
            shortest, unitsOf(panel, std::max<int64_t>(
                                         panel.timeline->duration(w, i), 1)));
  return shortest;
}

/// The name of the unit of a timeline's axis.
static std::string unitOf(const Timeline &timeline) {
  return timeline.slots ? "slot" : timeline.scale.unit->name;
}

/// Makes each plot as wide as its boxes need to be readable. Timelines with the
/// same unit then get the same scale: the largest that one of them needs.
/// Requires that the range of each panel's axis is set.
static void chooseWidths(std::span<const Panel> panels,
                         std::vector<Axis> &axes) {
  struct Scale {
    double longest = 0;       ///< length of the longest axis, in units
    double plot = kLeastPlot; ///< width of its plot
    double most = kWidest;
  };
  std::map<std::string, Scale> scales; // by unit
  auto lengthOf = [&](size_t i) {
    return (axes[i].end - axes[i].begin) /
           static_cast<double>(panels[i].timeline->scale.perUnit);
  };
  for (size_t i = 0; i < panels.size(); ++i) {
    Scale &scale = scales[unitOf(*panels[i].timeline)];
    scale.longest = std::max(scale.longest, lengthOf(i));
  }
  for (size_t i = 0; i < panels.size(); ++i) {
    Scale &scale = scales[unitOf(*panels[i].timeline)];
    const double width = readableWidth(*panels[i].timeline, axes[i]);
    scale.most = std::max(scale.most, width);
    scale.plot = std::max(scale.plot, width * (scale.longest / lengthOf(i)));
  }
  for (size_t i = 0; i < panels.size(); ++i) {
    const Scale &scale = scales[unitOf(*panels[i].timeline)];
    axes[i].plot =
        std::min(scale.plot, scale.most) * (lengthOf(i) / scale.longest);
  }
}

static Magnitude magnitudeOf(const Timeline &timeline, double units) {
  return timeline.slots ? Magnitude{1, ""}
                        : schedule::magnitudeOf(units, *timeline.scale.unit);
}

std::vector<Axis> axesOf(std::span<const Panel> panels) {
  if (panels.empty())
    return {};
  const Picture &picture = panels.front().timeline->picture;
  const double longest = longestOf(panels), shortest = shortestOf(panels);
  std::vector<Axis> axes;
  for (const Panel &panel : panels) {
    const Timeline &timeline = *panel.timeline;
    Axis &axis = axes.emplace_back();
    axis.end = static_cast<double>(panel.end);
    axis.magnitude = magnitudeOf(timeline, unitsOf(panel, panel.end));
    const auto perUnit = static_cast<double>(timeline.scale.perUnit);
    if (picture.from || picture.to) {
      axis.magnitude = magnitudeOf(timeline, longest);
      double each = axis.magnitude.units * perUnit; // ticks
      axis.begin = picture.from.value_or(0) * each;
      axis.end = picture.to ? *picture.to * each : longest * perUnit;
    }
    if (picture.cellWidth > 0)
      axis.plot =
          picture.cellWidth * (axis.end - axis.begin) / (shortest * perUnit);
  }
  if (picture.cellWidth <= 0)
    chooseWidths(panels, axes);
  return axes;
}

static std::string writtenNumber(double value) {
  char digits[32];
  auto [textEnd, error] = std::to_chars(digits, digits + sizeof digits, value,
                                        std::chars_format::general, 6);
  return {digits, textEnd};
}

std::string errorOf(std::span<const Panel> panels) {
  if (panels.empty())
    return {};
  const Timeline &first = *panels.front().timeline;
  const Picture &picture = first.picture;
  const bool hasRange = picture.from || picture.to;
  if (!hasRange && picture.cellWidth <= 0)
    return {};
  for (const Panel &panel : panels)
    if (unitOf(*panel.timeline) != unitOf(first))
      return "expected pipelines with one unit of time in a picture with a "
             "cell width or a range of time, got " +
             unitOf(first) + " and " + unitOf(*panel.timeline);
  const Magnitude magnitude = magnitudeOf(first, longestOf(panels));
  const double end = longestOf(panels) / magnitude.units;
  const double from = picture.from.value_or(0);
  const double to = picture.to.value_or(end);
  auto isWhole = [](double time) { return time == std::floor(time); };
  if (first.slots && !(isWhole(from) && isWhole(to)))
    return "expected a range of whole slots, got " + writtenNumber(from) +
           " to " + writtenNumber(to);
  if (from >= to || from >= end)
    return "expected a range of time that begins before " +
           writtenNumber(std::min(to, end)) +
           (magnitude.name.empty() ? "" : " " + magnitude.name) + ", " +
           (to < end ? "where it ends" : "where the schedule ends") +
           ", got one from " + writtenNumber(from);
  if (picture.cellWidth <= 0)
    return {};
  double widest = 0;
  for (const Axis &axis : axesOf(panels))
    widest = std::max(widest, axis.plot);
  if (widest < 1 || widest > kWidestChosen)
    return "expected rows of 1 to " + writtenNumber(kWidestChosen) +
           " pixels, got " + writtenNumber(widest) +
           ": choose another cell width or range of time";
  return {};
}

} // namespace chimera::schedule::svg
