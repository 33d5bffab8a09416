//===- Grid.h - A schedule as a grid of characters ------------ -*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_TIMELINE_GRID_H
#define CHIMERA_COMPILER_SCHEDULE_TIMELINE_GRID_H

#include <string>

namespace chimera::schedule {

struct Timeline;

/// The grid of the Chimera paper: a row for each worker, a column for each tick
/// or slot. A cell has a letter for the kind of action and the micro-batch.
/// Letters are upper case for down pipelines, lower case for up pipelines:
///
///   F B    forward, backward
///   I W    input gradient, weight gradient
///   R      recompute
///   F01    forward of micro-batches 0 and 1 (F8-11: of 8 to 11)
///   B0a    backward of the first half of micro-batch 0 (B0b: of the second)
///   =      the action continues
///   .      idle
///   A1     wait for the all-reduce of stage 1
///   A      wait for the all-reduce of the tied weights
///   U1 u1  update of stage 1
///   >      the worker sends the message of the action before
///   <      the worker receives the message of the action after
///
/// A grid of more than a thousand ticks has longer columns: as long as the
/// shortest action, rounded down to 1, 2 or 5 times a power of ten. A line
/// below the grid then says how long a column is. If there would be more than
/// 250 of these longer columns, or more than a thousand slots, there is no
/// grid. One line says so instead.
///
/// Lines have at most `lineWidth` characters (0: no limit), but at least one
/// column. Columns that do not fit into a line follow in further grids below,
/// each with a heading. Requires a complete timing.
std::string renderGrid(const Timeline &timeline);

/// The marks of the grid that not every grid has, with an example of each:
/// "I: input gradient; A1: wait for the all-reduce of stage 1". Empty if the
/// grid has only capital F and B, = and . or if there is no grid. The marks >
/// and < are in describeOccupations.
std::string describeMarks(const Timeline &timeline);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_TIMELINE_GRID_H
