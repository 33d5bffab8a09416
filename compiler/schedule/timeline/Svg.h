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

/// One SVG 1.1 document, the timelines one below the other: a row for each
/// worker, a box for each action, coloured by kind, full for down pipelines and
/// pale for up pipelines, and a lower box where a message occupies the worker;
/// the rest of a row is the bubble, hatched. Boxes that
/// are wide enough show their micro-batch; every box and every row has a text
/// that viewers show when pointed at it. Each row ends with its idle time and
/// its peak of activations. The same timelines give the same text.
std::string renderSvg(std::span<const Timeline> timelines);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SVG_H
