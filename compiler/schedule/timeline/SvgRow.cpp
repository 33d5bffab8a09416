//===- SvgRow.cpp - The row of a worker in a picture ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/SvgRow.h"

#include "compiler/schedule/text/Magnitude.h"
#include "compiler/schedule/text/SvgText.h"
#include "compiler/schedule/timeline/SvgStyle.h"

#include <algorithm>

namespace chimera::schedule::svg {

double labelWidth(const Timeline &timeline, const Action &action,
                  double digit) {
  return 3 +
         digit * static_cast<double>(microBatchText(timeline, action).size());
}

std::string RowDrawer::exact(int64_t ticks) const {
  return decimalNumber(ticks, timeline.scale.perUnit);
}

std::string RowDrawer::drawBubble(const std::string &title, double x, double y,
                                  double width) {
  return withTooltip(title, "<rect class=\"bubble\" x=\"" + svgNumber(x) +
                                "\" y=\"" + svgNumber(y + (kRow - kBox) / 2) +
                                "\" width=\"" + svgNumber(width) +
                                "\" height=\"" + svgNumber(kBox) + "\"/>");
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
                                const std::string &name, const Span &span,
                                double top, double bottom) const {
  if (!axis.shows(span.begin, span.end))
    return {};
  return withTooltip(
      name + ", P" + std::to_string(worker) + ", " + timeline.axis() + " " +
          exact(span.begin) + " to " + exact(span.end),
      std::string("<rect class=\"") + style + "\" x=\"" +
          svgNumber(xOf(span.begin)) + "\" y=\"" + svgNumber(top) +
          "\" width=\"" + svgNumber(xOf(span.end) - xOf(span.begin)) +
          "\" height=\"" + svgNumber(bottom - top) + "\"/>");
}

/// Boxes for sends and receives. They are in the middle of the row and have
/// half the height of an action's box, because the worker is occupied but the
/// time counts as idle.
std::string RowDrawer::drawOccupations(size_t worker) const {
  std::string svg;
  for (const Occupation &occupation : (*timeline.occupations)[worker])
    svg += drawSpan(
        worker, "message",
        describe(timeline, timeline.schedule.workers[worker][occupation.index],
                 occupation),
        occupation, kBox / 4, 3 * kBox / 4);
  return svg;
}

/// Boxes for the worker's waits and updates. A line below the row shows when an
/// all-reduce of the worker's gradients is in progress.
std::string RowDrawer::drawSyncAndUpdate(size_t worker) const {
  std::string svg;
  auto add = [&](const char *style, const std::string &name, const Span &span,
                 double top, double bottom) {
    svg += drawSpan(worker, style, name, span, top, bottom);
  };
  for (const SyncAndUpdate::Work &work : timeline.syncAndUpdate->work[worker])
    if (work.isUpdate())
      add("update", "update of stage " + std::to_string(*work.stage), work, 0,
          kBox);
    else
      add("wait", "wait for " + nameOfAllReduce(work.stage, work.isNorm), work,
          0, kBox);
  for (const SyncAndUpdate::AllReduce &allReduce :
       timeline.syncAndUpdate->allReduces)
    if (allReduce.end > allReduce.begin &&
        std::ranges::count(allReduce.workers, static_cast<int32_t>(worker)) > 0)
      add("all-reduce", nameOfAllReduce(allReduce.stage, allReduce.isNorm),
          allReduce, kBox, kRow);
  return svg;
}

/// A line below the actions of the worker's body (Schedule::Body).
std::string RowDrawer::drawBody(size_t worker) const {
  auto [begin, end] = timeline.schedule.bodies[worker];
  if (begin == end)
    return {};
  const std::vector<int64_t> &starts = timeline.timing.starts[worker];
  int64_t from = starts[begin];
  int64_t to = starts[end - 1] + timeline.duration(worker, end - 1);
  if (!axis.shows(from, to))
    return {};
  return "<rect class=\"body\" x=\"" + svgNumber(xOf(from)) + "\" y=\"" +
         svgNumber(kBox) + "\" width=\"" + svgNumber(xOf(to) - xOf(from)) +
         "\" height=\"" + svgNumber(kRow - kBox) + "\"/>\n";
}

std::string RowDrawer::drawBox(size_t worker, size_t index) const {
  const Action &action = timeline.schedule.workers[worker][index];
  int64_t start = timeline.timing.starts[worker][index];
  int64_t duration = timeline.duration(worker, index);
  if (!axis.shows(start, start + duration))
    return {};
  // Leaves a gap between neighbouring boxes, unless they are very narrow.
  double left = xOf(start), width = xOf(start + duration) - left;
  double gap = width > 4 ? 1 : 0;
  bool up = timeline.problem.pipelines[action.pipeline].up;
  int32_t chunk = timeline.chunks.numberOf(action);
  std::string name = microBatchText(timeline, action);
  std::string svg =
      "<g><title>" + wordsOf(action.kind) + " of " + coverInWords(action) +
      ", stage " + std::to_string(action.stage) +
      (palette.chunks() > 1 ? ", chunk " + std::to_string(chunk) : "") +
      ", pipeline " + std::to_string(action.pipeline) +
      (!palette.hasDirections() ? ""
       : up                     ? " (up)"
                                : " (down)") +
      ", P" + std::to_string(worker) + ", " + timeline.axis() + " " +
      exact(start) + (timeline.slots ? "" : " to " + exact(start + duration)) +
      "</title><rect class=\"" + palette.classOf(action.kind, up, chunk) +
      "\" x=\"" + svgNumber(left + gap / 2) + "\" width=\"" +
      svgNumber(width - gap) + "\" height=\"" + svgNumber(kBox) + "\"" +
      (gap > 0 ? " rx=\"2\"" : "") + "/>";
  for (auto [digit, size] : kDigits)
    if (labelWidth(timeline, action, digit) <= width) {
      svg +=
          std::string("<text class=\"") + size +
          (palette.shadeOf(action.kind, up, chunk).hasBlackText ? " p" : "") +
          "\" x=\"" + svgNumber(left + width / 2) + "\" y=\"" +
          svgNumber(kBox / 2 + 4) + "\">" + name + "</text>";
      break;
    }
  return svg + "</g>\n";
}

} // namespace chimera::schedule::svg
