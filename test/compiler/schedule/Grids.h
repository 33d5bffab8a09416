//===- Grids.h - Schedules drawn as text ------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two notations of schedules as text. The first is that of renderGrid and of
// the Chimera paper: a word for each slot or unit of time,
//
//   slot 0  1  2  3
//   P0   F0 f1 b1 B0
//
// The second is the dense notation of the papers on zero bubbles: one or two
// characters for each unit of time. A digit is the forward of that micro-batch;
// lower case a, b, … is the backward or input gradient of micro-batch 0, 1, …;
// upper case is the weight gradient; `.` is idle. With two characters, the
// second is `'` for chunk 1 and a blank for chunk 0. An action repeats its cell
// while it runs.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_COMPILER_SCHEDULE_GRIDS_H
#define CHIMERA_TEST_COMPILER_SCHEDULE_GRIDS_H

#include "compiler/schedule/Simulate.h"

#include <string>
#include <tuple>
#include <vector>

namespace chimera::schedule {

using Cells = std::vector<std::vector<std::string>>;

/// The words of each line that is not empty.
Cells cellsOf(const std::string &text);

/// An action of a dense grid. Actions are ordered by worker, then by start.
struct DrawnAction {
  int32_t worker;
  int64_t start;
  Kind kind;
  int32_t microBatch;
  int32_t chunk = 0;

  auto operator<=>(const DrawnAction &) const = default;
};
std::ostream &operator<<(std::ostream &os, const DrawnAction &action);

/// Reads a dense grid with cells of `width` characters and actions that take
/// the times of `cost`. Lower case is a backward or, if `split`, an input
/// gradient. Throws if the text is not a grid.
std::vector<DrawnAction> readDense(const std::string &text, size_t width,
                                   StageCost cost, bool split);

/// The simulator's times in the same form, all in chunk 0.
std::vector<DrawnAction> drawn(const Schedule &schedule, const Timing &timing);

/// The order that a dense grid shows. Chunk c of worker w is stage stageOf(w,
/// c) of the only pipeline.
Schedule orderOf(const std::vector<DrawnAction> &actions, int32_t workers,
                 int32_t (*stageOf)(int32_t worker, int32_t chunk));

} // namespace chimera::schedule

#endif // CHIMERA_TEST_COMPILER_SCHEDULE_GRIDS_H
