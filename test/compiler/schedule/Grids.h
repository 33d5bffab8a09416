//===- Grids.h - Schedules drawn as text ------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two notations. renderGrid's, which the Chimera paper uses too: a word for
// each slot or unit of time,
//
//   slot 0  1  2  3
//   P0   F0 f1 b1 B0
//
// and the dense one of the papers on zero bubbles: one or two characters for
// each unit of time, a digit for the forward of that micro-batch, lower case
// a, b, … for the backward or input gradient of micro-batch 0, 1, …, upper case
// for the weight gradient, `.` for nothing; in two characters the second is `'`
// for chunk 1 and a blank for chunk 0. An action repeats its cell while it
// runs.
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

/// The words of each line that has any.
Cells cellsOf(const std::string &text);

/// An action of a dense grid. Ordered by worker, then start.
struct DrawnAction {
  int32_t worker;
  int64_t start;
  Kind kind;
  int32_t microBatch;
  int32_t chunk = 0;

  auto operator<=>(const DrawnAction &) const = default;
};
std::ostream &operator<<(std::ostream &os, const DrawnAction &action);

/// Reads a dense grid whose cells are `width` characters and whose actions
/// take the times of `cost`; lower case is a backward, or an input gradient
/// where `split`. Throws on what is no grid.
std::vector<DrawnAction> readDense(const std::string &text, size_t width,
                                   StageCost cost, bool split);

/// What the simulator says, in the same form, all in chunk 0.
std::vector<DrawnAction> drawn(const Schedule &schedule, const Timing &timing);

/// The order that a dense grid shows: chunk c of worker w is the stage
/// stageOf(w, c) of the one pipeline.
Schedule orderOf(const std::vector<DrawnAction> &actions, int32_t workers,
                 int32_t (*stageOf)(int32_t worker, int32_t chunk));

} // namespace chimera::schedule

#endif // CHIMERA_TEST_COMPILER_SCHEDULE_GRIDS_H
