//===- Svg.h - A schedule as a picture --------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SVG_H
#define CHIMERA_COMPILER_SCHEDULE_SVG_H

#include "compiler/schedule/timeline/Timeline.h"

namespace chimera::schedule {

/// One SVG 1.1 document with the timelines one below the other. Each worker is
/// a row and each action a box. Each kind of action has a hue. Directions and
/// chunks (the stages of one pipeline on a worker) have shades of this hue
/// (SvgPalette.h). A box of half the height shows that a message occupies the
/// worker. The rest of a row is the bubble, hatched. Boxes that are wide enough
/// show their micro-batch. Every box and every row has a tooltip. At the end of
/// each row are the worker's idle time and its peak activations, in the whole
/// schedule, unless the Picture leaves them out. Equal timelines give equal
/// text.
///
/// Requires that all timelines have the same Picture and that pictureError
/// returns nothing.
std::string renderSvg(std::span<const Timeline> timelines);

/// The reason why renderSvg cannot draw the timelines with the options of their
/// Picture. Empty if it can draw them, which is always so with the default
/// options. There is a reason if
/// - a range of time does not begin before its own end and the end of the
///   longest timeline,
/// - a range begins or ends within a slot,
/// - there is a range or a cell width, and timelines have different units, or
/// - there is a cell width, and rows would be narrower than a pixel or wider
///   than 30,000 pixels.
std::string pictureError(std::span<const Timeline> timelines);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SVG_H
