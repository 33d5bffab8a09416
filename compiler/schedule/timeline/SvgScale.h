//===- SvgScale.h - The time and the size of a picture ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SVGSCALE_H
#define CHIMERA_COMPILER_SCHEDULE_SVGSCALE_H

#include "compiler/schedule/timeline/SvgAxis.h"

namespace chimera::schedule::svg {

/// A timeline to draw, and the end of its axis in ticks, above 0. If the
/// Picture of the timeline has a range of time, the axis has that range, and
/// `end` is not used for it.
struct Panel {
  const Timeline *timeline;
  int64_t end;
};

/// The axis of each panel. The panels are one below the other in a picture and
/// have the same Picture. Requires that errorOf returns nothing.
std::vector<Axis> axesOf(std::span<const Panel> panels);

/// The reason why the panels cannot be drawn with the options of their Picture.
/// Empty if they can be drawn.
std::string errorOf(std::span<const Panel> panels);

} // namespace chimera::schedule::svg

#endif // CHIMERA_COMPILER_SCHEDULE_SVGSCALE_H
