//===- Html.h - A schedule as a page to look around in ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_TIMELINE_HTML_H
#define CHIMERA_COMPILER_SCHEDULE_TIMELINE_HTML_H

#include "compiler/schedule/timeline/SideBySide.h"

namespace chimera::schedule {

/// One HTML page with the timelines one below the other on one time axis. The
/// page needs no other file and no network. Its reader zooms and pans. Under
/// the pointer, an action shows its times, its wait, the bytes that it sends,
/// and the actions that it needs and that need it. Below each worker is a curve
/// of its bytes or, if the problem states none, of its activations. Below all
/// workers are the all-reduces. The page is dark if the reader's system is.
///
/// Times of different units share the axis only if all units are durations.
/// Otherwise the numbers do. Equal timelines give equal text.
///
/// The page has its data as JSON in an element with the id "data":
///
///   axis, unit      the title of the axis; the unit after a time, or ""
///   isSideBySide    whether two timelines are a prediction and a run
///   notes           lines below the rows
///   timelines       for each timeline:
///     title, ticks  the number of ticks in a unit of the axis
///     end           in ticks, as all times of a timeline
///     colours       [fill, edge or "", text, "forward, up"] by number
///     isInBytes, most   the unit of `memory` and its largest value
///     workers       for each worker, by action: colour, label, stage, start
///                   and length; `same` and `other`, the actions of the same
///                   and of another stage that it needs, or -1, counted through
///                   all workers; and `sends`, in bytes, if known. Also spans,
///                   [begin, end, style, name] of what is no action, and
///                   memory: time and value of each step, in turn.
///     allReduces    rows of spans, in which no two overlap
std::string renderHtml(std::span<const Timeline> timelines);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_TIMELINE_HTML_H
