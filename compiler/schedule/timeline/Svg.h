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
/// a row and each action a box, coloured by kind: dark for down pipelines, pale
/// for up pipelines. A lower box shows that a message occupies the worker. The
/// rest of a row is the bubble, hatched. Boxes that are wide enough show their
/// micro-batch. Every box and every row has a tooltip. Each row ends with its
/// idle time and its peak of activations. Equal timelines give equal text.
std::string renderSvg(std::span<const Timeline> timelines);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SVG_H
