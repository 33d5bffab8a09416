//===- SvgAxis.h - The time axis of a picture -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SVGAXIS_H
#define CHIMERA_COMPILER_SCHEDULE_SVGAXIS_H

#include "compiler/schedule/text/Magnitude.h"
#include "compiler/schedule/timeline/Timeline.h"

namespace chimera::schedule::svg {

/// The time axis of a picture: the range of time that it shows, and the
/// position of each time.
struct Axis {
  double begin = 0, end = 1;     ///< in ticks, begin < end
  double plot = 0;               ///< width in pixels
  Magnitude magnitude = {1, ""}; ///< of the times at the marks

  double perTick() const { return plot / (end - begin); } ///< pixels
  /// The position of a time, in pixels from the left edge. A time outside the
  /// shown range has the position of the nearer edge.
  double xOf(int64_t ticks) const {
    return (std::clamp(static_cast<double>(ticks), begin, end) - begin) *
           perTick();
  }
  /// True if a part of the time from `from` to `to` is shown.
  bool shows(int64_t from, int64_t to) const {
    auto first = static_cast<double>(from), last = static_cast<double>(to);
    return from == to ? begin <= first && first <= end
                      : first < end && begin < last;
  }
};

/// Draws the marks, their times and the name of the axis. The line of a mark
/// runs from the top through all rows to `bottom`. The texts are below
/// `bottom`: the number of a slot is in the middle of the slot, a time is at
/// its mark.
std::string drawAxis(const Timeline &timeline, const Axis &axis, double bottom);

} // namespace chimera::schedule::svg

#endif // CHIMERA_COMPILER_SCHEDULE_SVGAXIS_H
