//===- Grids.h - Schedules drawn as text ------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two notations of schedules as text. The first one is the notation of
// renderGrid and of Chimera's paper, with a word for each slot or each unit of
// time:
//
//   slot 0  1  2  3
//   P0   F0 f1 b1 B0
//
// The second one is the dense notation of papers on zero bubbles, with one or
// two characters (a cell) for each unit of time. A digit is the forward of that
// micro-batch. Lower case a, b, … is the backward or the input gradient of
// micro-batch 0, 1, …, and upper case is its weight gradient. `.` is idle time.
// If a cell has two characters, the second one is `'` for chunk 1 and a blank
// for chunk 0. An action repeats its cell while it runs.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_COMPILER_SCHEDULE_GRIDS_H
#define CHIMERA_TEST_COMPILER_SCHEDULE_GRIDS_H

#include "compiler/schedule/simulate/Timing.h"

#include <string>
#include <tuple>
#include <vector>

namespace chimera::schedule {

using Cells = std::vector<std::vector<std::string>>;

/// The words of each line, without empty lines.
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

/// Reads the actions of a dense grid. A cell has `width` characters, and
/// actions take the times of `cost`. Lower case is an input gradient if
/// `split`, otherwise a backward. Throws if the text is not a grid.
std::vector<DrawnAction> readDense(const std::string &text, size_t width,
                                   StageCost cost, bool split);

/// The actions of a schedule with their simulated times, all in chunk 0.
std::vector<DrawnAction> drawnActions(const Schedule &schedule,
                                      const Timing &timing);

/// The order of the actions of a dense grid. The grid has one pipeline. Chunk c
/// of worker w is stage stageOf(w, c).
Schedule orderOf(const std::vector<DrawnAction> &actions, int32_t workers,
                 int32_t (*stageOf)(int32_t worker, int32_t chunk));

} // namespace chimera::schedule

#endif // CHIMERA_TEST_COMPILER_SCHEDULE_GRIDS_H
