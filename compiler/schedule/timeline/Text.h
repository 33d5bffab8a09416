//===- Text.h - Timelines as text -------------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_TEXT_H
#define CHIMERA_COMPILER_SCHEDULE_TEXT_H

#include "compiler/schedule/timeline/Timeline.h"

namespace chimera::schedule {

/// A title, a grid and a summary for each timeline. A line below the grid
/// explains its marks (describeMarks). If messages occupy workers, a line
/// explains their signs > and <. If a grid would have too many columns, a line
/// says so instead of the grid.
std::string renderText(std::span<const Timeline> timelines);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_TEXT_H
