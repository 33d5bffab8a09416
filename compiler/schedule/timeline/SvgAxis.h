//===- SvgAxis.h - The time axis of a picture -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SVGAXIS_H
#define CHIMERA_COMPILER_SCHEDULE_SVGAXIS_H

#include "compiler/schedule/timeline/Timeline.h"

namespace chimera::schedule::svg {

/// The axis of times from 0 to `end`, `plot` pixels wide. A line for each mark
/// runs from the top through all rows to `bottom`; the times and the axis's
/// name are below. A slot's name is in its middle; a time is at its mark.
/// Requires `end` > 0.
std::string drawAxis(const Timeline &timeline, int64_t end, double plot,
                     double bottom);

} // namespace chimera::schedule::svg

#endif // CHIMERA_COMPILER_SCHEDULE_SVGAXIS_H
