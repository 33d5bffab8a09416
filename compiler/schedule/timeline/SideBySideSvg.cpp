//===- SideBySideSvg.cpp - Predicted and measured, as a picture -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/text/Magnitude.h"
#include "compiler/schedule/text/SvgText.h"
#include "compiler/schedule/timeline/Differences.h"
#include "compiler/schedule/timeline/SideBySide.h"
#include "compiler/schedule/timeline/SvgHeading.h"
#include "compiler/schedule/timeline/SvgRow.h"
#include "compiler/schedule/timeline/SvgScale.h"
#include "compiler/schedule/timeline/SvgStyle.h"

#include <algorithm>

namespace chimera::schedule {

namespace {

using namespace svg;

// Lengths in pixels.
constexpr double kPairLabels = 110; ///< labels, left of the rows
/// The part of kPairLabels for "predicted" and "measured".
constexpr double kLabel = 66;
constexpr double kPairIdle = 46;  ///< idle share, right of the rows
constexpr double kPairRight = 12; ///< right of the rows and the idle shares
constexpr double kGap = 10;       ///< between the rows of two workers
constexpr double kPair = 2 * kRow + kGap;

/// The number of differences of each kind that are listed below the rows.
constexpr size_t kMostDifferences = 3;

/// The legend of both kinds of rows. Only predicted rows show when messages
/// occupy workers.
std::vector<LegendEntry> legendOf(const SideBySide &both,
                                  const Palette &palette, const Axis &axis) {
  const Timeline *rows[] = {&both.predicted, &both.measured};
  std::vector<LegendEntry> legend = svg::legendOf(rows, palette, axis);
  for (LegendEntry &entry : legend)
    if (entry.boxes.front().style == "message")
      entry.name += ", predicted";
  return legend;
}

Panel panelOf(const SideBySide &both) {
  return {&both.predicted, std::max<int64_t>(both.end(), 1)};
}

/// The drawing of both steps. Its upper left corner is (0, 0).
class PairsDrawing {
public:
  explicit PairsDrawing(const SideBySide &both)
      : both(both), axis(axisOf(both)), palette(both.predicted.problem),
        heading(picture().hasTitle ? both.timeline.title : "",
                picture().hasTitle
                    ? both.describeStep() + " · measured: " + both.nameOfRun()
                    : "",
                Legend(legendOf(both, palette, axis), width()), width()) {
    addNote(both.noteOfRun());
    for (const DifferenceKind &kind : differenceKinds())
      for (const Difference &difference : largestDifferences(
               kind, both.prediction, both.run, kMostDifferences))
        addNote(describe(both.measured, kind, difference));
  }

  double width() const {
    return std::max(kPairLabels + axis.plot +
                        (picture().hasIdle ? kPairIdle : 0) + kPairRight,
                    kLeastWidth);
  }
  double height() const {
    return heading.height() + rowsHeight() + kAxis +
           kNoteLine * static_cast<double>(notes.size());
  }

  std::string rules() const { return palette.rules(); }
  std::string draw() const {
    std::string svg = heading.draw() + "<g transform=\"translate(" +
                      svgNumber(kPairLabels) + " " +
                      svgNumber(heading.height()) + ")\">\n";
    auto eachRow = [&](auto draw) {
      for (size_t w = 0; w < both.prediction.timing.starts.size(); ++w) {
        double y = kPair * static_cast<double>(w);
        svg += draw(w, y, both.predicted, both.prediction, "predicted");
        svg += draw(w, y + kRow, both.measured, both.run, "measured");
      }
    };
    eachRow([&](size_t w, double y, const Timeline &,
                const NanosecondStep &step,
                const char *which) { return frame(w, y, step, which); });
    for (size_t w = 0; w < both.prediction.timing.starts.size(); ++w)
      svg += text("worker", -kLabel - 10,
                  kPair * static_cast<double>(w) + kRow + 4,
                  "P" + std::to_string(w));
    svg += drawAxis(both.predicted, axis, rowsHeight());
    if (picture().hasIdle)
      svg +=
          withTooltip("share of the worker's step in which it runs no action",
                      text("figure", axis.plot + kPairIdle, -6, "idle"));
    eachRow([&](size_t w, double y, const Timeline &timeline,
                const NanosecondStep &, const char *) {
      return RowDrawer(timeline, axis, palette).draw(w, y);
    });
    svg += "</g>\n";
    double y = heading.height() + rowsHeight() + kAxis + 10;
    for (const std::string &line : notes) {
      svg += text("note", 0, y, line);
      y += kNoteLine;
    }
    return svg;
  }

private:
  const Picture &picture() const { return both.predicted.picture; }

  void addNote(const std::string &note) {
    if (note.empty())
      return;
    for (std::string &line :
         wrap(note, static_cast<size_t>(width() / kNoteCharacter)))
      notes.push_back(std::move(line));
  }

  static Axis axisOf(const SideBySide &both) {
    Panel panel = panelOf(both);
    return axesOf({&panel, 1}).front();
  }

  double rowsHeight() const {
    return kPair * static_cast<double>(both.prediction.timing.starts.size()) -
           kGap;
  }

  /// A hatched row as long as the worker's step, with the label `which` and the
  /// idle share of the step.
  std::string frame(size_t w, double y, const NanosecondStep &step,
                    const char *which) const {
    auto time = [&](int64_t nanoseconds) {
      return roundedTime(static_cast<double>(nanoseconds), both.measured.scale);
    };
    double base = y + kRow / 2 + 4;
    double x = axis.xOf(step.begin(w)), width = axis.xOf(step.end(w)) - x;
    int64_t idle = step.idle(w), length = step.end(w) - step.begin(w);
    std::string share =
        percent(static_cast<double>(idle) /
                static_cast<double>(std::max<int64_t>(length, 1)));
    return RowDrawer::drawBubble("P" + std::to_string(w) + ", " + which +
                                     ": idle " + time(idle) + " of " +
                                     time(length) + " (" + share + ")",
                                 x, y, width) +
           text("figure", -10, base, which) +
           (picture().hasIdle
                ? text("figure", axis.plot + kPairIdle, base, share)
                : "");
  }

  const SideBySide &both;
  Axis axis; ///< in nanoseconds
  Palette palette;
  Heading heading;
  std::vector<std::string> notes; ///< lines of text below the rows
};

} // namespace

std::string pictureError(const SideBySide &both) {
  Panel panel = panelOf(both);
  return errorOf({&panel, 1});
}

std::string renderSvgSideBySide(const SideBySide &both) {
  PairsDrawing pairs(both);
  return document(pairs.width() + 2 * kMargin, pairs.height() + 2 * kMargin,
                  pairs.rules(),
                  "<g transform=\"translate(" + svgNumber(kMargin) + " " +
                      svgNumber(kMargin) + ")\">\n" + pairs.draw() + "</g>\n");
}

} // namespace chimera::schedule
