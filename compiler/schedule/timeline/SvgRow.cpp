//===- SvgRow.cpp - The row of a worker in a picture ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/SvgRow.h"

#include "compiler/schedule/Magnitude.h"
#include "compiler/schedule/SvgText.h"
#include "compiler/schedule/timeline/SvgStyle.h"

#include <algorithm>

namespace chimera::schedule::svg {

// Lengths in pixels.
static constexpr double kLeastPlot = 460;
/// The desired width of the shortest action. If the plot would then be wider
/// than kMost, it is only as wide as the labels of all actions need, between
/// kMost and kWidest.
static constexpr double kBoxWidth = 26;
static constexpr double kMost = 3600, kWidest = 12000;
/// The minimum of the average width of actions. It has priority over the
/// limits.
static constexpr double kLeastBox = 3;

/// The width of the label of a box, with a margin.
static double textWidth(const Timeline &timeline, const Action &action,
                        double digit) {
  return 3 + digit * static_cast<double>(
                         microBatchText(timeline.problem, action).size());
}

double plotWidth(const Timeline &timeline, int64_t end) {
  int64_t shortest = timeline.timing.makespan;
  double legible = 0; // pixels per tick
  size_t most = 1;
  for (size_t w = 0; w < timeline.schedule.workers.size(); ++w) {
    const std::vector<Action> &row = timeline.schedule.workers[w];
    most = std::max(most, row.size());
    for (size_t i = 0; i < row.size(); ++i) {
      int64_t duration = std::max<int64_t>(timeline.duration(w, i), 1);
      shortest = std::min(shortest, duration);
      legible =
          std::max(legible, textWidth(timeline, row[i], kDigits.back().first) /
                                static_cast<double>(duration));
    }
  }
  auto length = static_cast<double>(end);
  double ideal = kBoxWidth * length / static_cast<double>(shortest);
  double least = std::max(kLeastPlot, kLeastBox * static_cast<double>(most));
  // Slightly more, so that rounding does not hide a label.
  double enough = std::min(legible * length * 1.0001, kWidest);
  return std::max({least, std::min(ideal, kMost), std::min(ideal, enough)});
}

std::string RowDrawer::exact(int64_t ticks) const {
  return exactNumber(ticks, timeline.scale.perUnit);
}

std::string RowDrawer::drawBubble(const std::string &title, double x, double y,
                                  double width) {
  return "<g><title>" + title + "</title><rect class=\"bubble\" x=\"" +
         svgNumber(x) + "\" y=\"" + svgNumber(y + (kRow - kBox) / 2) +
         "\" width=\"" + svgNumber(width) + "\" height=\"" + svgNumber(kBox) +
         "\"/></g>\n";
}

static std::string coverInWords(const Action &action) {
  std::string first = std::to_string(action.microBatch);
  if (action.microBatches > 1)
    return "micro-batches " + first + " to " +
           std::to_string(action.microBatch + action.microBatches - 1);
  if (action.parts > 1)
    return "part " + std::to_string(action.part) + " of " +
           std::to_string(action.parts) + " of micro-batch " + first;
  return "micro-batch " + first;
}

std::string RowDrawer::draw(size_t worker, double y) const {
  std::string svg = "<g transform=\"translate(0 " +
                    svgNumber(y + (kRow - kBox) / 2) + ")\">\n";
  for (size_t i = 0; i < timeline.schedule.workers[worker].size(); ++i)
    svg += drawBox(worker, i);
  if (timeline.occupations)
    svg += drawOccupations(worker);
  if (!timeline.schedule.bodies.empty())
    svg += drawBody(worker);
  if (timeline.syncAndUpdate)
    svg += drawSyncAndUpdate(worker);
  return svg + "</g>\n";
}

std::string RowDrawer::drawSpan(size_t worker, const char *style,
                                const std::string &name,
                                const SyncAndUpdate::Span &span, double top,
                                double bottom) const {
  return "<g><title>" + name + ", P" + std::to_string(worker) + ", " +
         timeline.axis() + " " + exact(span.begin) + " to " + exact(span.end) +
         "</title><rect class=\"" + style + "\" x=\"" +
         svgNumber(at(span.begin)) + "\" y=\"" + svgNumber(top) +
         "\" width=\"" + svgNumber(at(span.end) - at(span.begin)) +
         "\" height=\"" + svgNumber(bottom - top) + "\"/></g>\n";
}

/// In the middle of the row and lower than an action: the worker is occupied,
/// but the time counts as idle.
std::string RowDrawer::drawOccupations(size_t worker) const {
  std::string svg;
  for (const Occupation &occupation : (*timeline.occupations)[worker])
    svg +=
        drawSpan(worker, "message",
                 describe(timeline.problem,
                          timeline.schedule.workers[worker][occupation.index],
                          occupation),
                 occupation, kBox / 4, 3 * kBox / 4);
  return svg;
}

/// Boxes for the worker's waits and updates. A line below the row shows each
/// all-reduce of its gradients while it is in progress.
std::string RowDrawer::drawSyncAndUpdate(size_t worker) const {
  std::string svg;
  auto add = [&](const char *style, const std::string &name,
                 const SyncAndUpdate::Span &span, double top, double bottom) {
    svg += drawSpan(worker, style, name, span, top, bottom);
  };
  for (const SyncAndUpdate::Work &work : timeline.syncAndUpdate->work[worker])
    if (work.isUpdate())
      add("update", "update of stage " + std::to_string(*work.stage), work, 0,
          kBox);
    else
      add("wait", "wait for " + nameOfAllReduce(work.stage), work, 0, kBox);
  for (const SyncAndUpdate::AllReduce &allReduce :
       timeline.syncAndUpdate->allReduces)
    if (allReduce.end > allReduce.begin &&
        std::ranges::count(allReduce.workers, static_cast<int32_t>(worker)) > 0)
      add("all-reduce", nameOfAllReduce(allReduce.stage), allReduce, kBox,
          kRow);
  return svg;
}

/// A line below the actions of the worker's body.
std::string RowDrawer::drawBody(size_t worker) const {
  auto [begin, end] = timeline.schedule.bodies[worker];
  if (begin == end)
    return {};
  const std::vector<int64_t> &starts = timeline.timing.starts[worker];
  int64_t from = starts[begin];
  int64_t to = starts[end - 1] + timeline.duration(worker, end - 1);
  return "<rect class=\"body\" x=\"" + svgNumber(at(from)) + "\" y=\"" +
         svgNumber(kBox) + "\" width=\"" + svgNumber(at(to) - at(from)) +
         "\" height=\"" + svgNumber(kRow - kBox) + "\"/>\n";
}

std::string RowDrawer::drawBox(size_t worker, size_t index) const {
  const Action &action = timeline.schedule.workers[worker][index];
  int64_t start = timeline.timing.starts[worker][index];
  int64_t duration = timeline.duration(worker, index);
  // A gap between neighbours, unless the boxes are very narrow.
  double width = at(duration), gap = width > 4 ? 1 : 0;
  auto kind = static_cast<size_t>(action.kind);
  std::string name = microBatchText(timeline.problem, action);
  std::string svg =
      std::string("<g><title>") + nameOfKind(kind) + " of " +
      coverInWords(action) + ", stage " + std::to_string(action.stage) +
      ", pipeline " + std::to_string(action.pipeline) +
      (isUp(action) ? " (up)" : " (down)") + ", P" + std::to_string(worker) +
      ", " + timeline.axis() + " " + exact(start) +
      (timeline.slots ? "" : " to " + exact(start + duration)) +
      "</title><rect class=\"" + classOf(kind, isUp(action)) + "\" x=\"" +
      svgNumber(at(start) + gap / 2) + "\" width=\"" + svgNumber(width - gap) +
      "\" height=\"" + svgNumber(kBox) + "\"" + (gap > 0 ? " rx=\"2\"" : "") +
      "/>";
  for (auto [digit, size] : kDigits)
    if (textWidth(timeline, action, digit) <= width) {
      svg += std::string("<text class=\"") + size + (isUp(action) ? " p" : "") +
             "\" x=\"" + svgNumber(at(start) + width / 2) + "\" y=\"" +
             svgNumber(kBox / 2 + 4) + "\">" + name + "</text>";
      break;
    }
  return svg + "</g>\n";
}

} // namespace chimera::schedule::svg
