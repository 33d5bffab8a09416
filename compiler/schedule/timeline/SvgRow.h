//===- SvgRow.h - The row of a worker in a picture --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SVGROW_H
#define CHIMERA_COMPILER_SCHEDULE_SVGROW_H

#include "compiler/schedule/timeline/Timeline.h"

namespace chimera::schedule::svg {

/// The width of the plot, in pixels, that makes the boxes of `timeline`
/// readable. `end` is the end of the time axis.
double plotWidth(const Timeline &timeline, int64_t end);

/// The rows of a timeline, each kRow high.
class RowDrawer {
public:
  /// `pixels` is the width of a tick.
  RowDrawer(const Timeline &timeline, double pixels)
      : timeline(timeline), pixels(pixels) {}

  /// The row of `worker`: a box for each action. `y` is its upper edge.
  std::string draw(size_t worker, double y) const;
  /// The hatched background of a row, from `x` and `width` pixels wide. It
  /// stays visible where the worker is idle. `title` is its tooltip.
  static std::string drawBubble(const std::string &title, double x, double y,
                                double width);

private:
  bool isUp(const Action &action) const {
    return timeline.problem.pipelines[action.pipeline].up;
  }
  double at(int64_t ticks) const { return static_cast<double>(ticks) * pixels; }
  std::string exact(int64_t ticks) const;

  /// A box of CSS class `style`, from `top` to `bottom` of the row.
  std::string drawSpan(size_t worker, const char *style,
                       const std::string &name, const SyncAndUpdate::Span &span,
                       double top, double bottom) const;
  std::string drawOccupations(size_t worker) const;
  std::string drawSyncAndUpdate(size_t worker) const;
  std::string drawBody(size_t worker) const;
  std::string drawBox(size_t worker, size_t index) const;

  const Timeline &timeline;
  double pixels;
};

} // namespace chimera::schedule::svg

#endif // CHIMERA_COMPILER_SCHEDULE_SVGROW_H
