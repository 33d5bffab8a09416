//===- SvgRow.h - The row of a worker in a picture --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SVGROW_H
#define CHIMERA_COMPILER_SCHEDULE_SVGROW_H

#include "compiler/schedule/timeline/SvgAxis.h"
#include "compiler/schedule/timeline/SvgPalette.h"

namespace chimera::schedule::svg {

/// The width in pixels of the label of an action, with a margin, if a digit is
/// `digit` pixels wide.
double labelWidth(const Timeline &timeline, const Action &action, double digit);

/// The rows of a timeline, within the time range of an axis. Each row is kRow
/// high.
class RowDrawer {
public:
  /// Keeps references to all arguments.
  RowDrawer(const Timeline &timeline, const Axis &axis, const Palette &palette)
      : timeline(timeline), axis(axis), palette(palette) {}

  /// The row of `worker`: a box for the shown part of each action. `y` is its
  /// upper edge.
  std::string draw(size_t worker, double y) const;
  /// The hatched background of a row, from `x` and `width` pixels wide. It
  /// stays visible where the worker is idle. `title` is its tooltip.
  static std::string drawBubble(const std::string &title, double x, double y,
                                double width);

private:
  double xOf(int64_t ticks) const { return axis.xOf(ticks); }
  std::string exact(int64_t ticks) const;

  /// The shown part of a box of CSS class `style`, from `top` to `bottom` of
  /// the row.
  std::string drawSpan(size_t worker, const char *style,
                       const std::string &name, const Span &span, double top,
                       double bottom) const;
  std::string drawOccupations(size_t worker) const;
  std::string drawSyncAndUpdate(size_t worker) const;
  std::string drawBody(size_t worker) const;
  std::string drawBox(size_t worker, size_t index) const;

  const Timeline &timeline;
  const Axis &axis;
  const Palette &palette;
};

} // namespace chimera::schedule::svg

#endif // CHIMERA_COMPILER_SCHEDULE_SVGROW_H
