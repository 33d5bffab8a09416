//===- AnswerFormats.h - Answers as tables and pictures ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLANNER_SEARCH_ANSWERFORMATS_H
#define CHIMERA_COMPILER_PLANNER_SEARCH_ANSWERFORMATS_H

#include "compiler/planner/search/Search.h"
#include "compiler/planner/search/StepBreakdown.h"

#include <span>
#include <string>

namespace chimera::plan {

/// Tokens per second for a step of `step` nanoseconds; samples per second if
/// the model has no tokens.
double rateOf(const Question &question, double step);
/// "tokens/s" or "samples/s".
const char *rateName(const Question &question);

/// The word for a policy in a pipeline's `all_reduce` clause.
const char *nameOf(schedule::AllReducePolicy policy);

struct TableStyle {
  /// Whether all columns are shown, and the options of schedules with their
  /// names. Otherwise a line has at most 120 characters, unless a plan has
  /// thousands of workers, copies or micro-batches.
  bool hasAllColumns = false;
  /// Whether the lines are numbered, from 1. The options --pick and --explain
  /// use these numbers.
  bool isNumbered = true;
};

/// A table with one line for each plan, in the order of `breakdowns`. The
/// columns are schedule, sizes, step time, tokens (or samples) per second, idle
/// share, and bytes of the largest worker. The other columns are the largest
/// avoidable share of the step time, the policy of all-reduces, the time of
/// all-reduces that are not overlapped, and the time of updates. Columns in
/// which no plan has a value are left out.
std::string planTable(const Question &question,
                      std::span<const StepBreakdown> breakdowns,
                      TableStyle style);

/// The meaning of the table's columns, as lines below the table.
std::string tableLegend(TableStyle style);

/// A table with one line for each scheme. The line has the number of the
/// scheme's plans. It also says how many of these plans were simulated, were
/// ruled out by a bound, are too large for the memory, or are impossible. Lines
/// below the table give the reasons.
std::string outcomeTable(const Question &question, const Space &space,
                         const Answer &answer);

/// A table that compares the shares of two plans' step times, and a line that
/// names the share with the largest difference.
std::string comparisonTable(const StepBreakdown &one,
                            const StepBreakdown &other);

/// An SVG picture of all simulated plans. The axes are the step time and the
/// bytes of the largest worker. The picture also shows the memory of a device
/// and the Pareto front: the plans that no other plan beats in both time and
/// memory.
std::string pictureOf(const Question &question, const Answer &answer);

} // namespace chimera::plan

#endif // CHIMERA_COMPILER_PLANNER_SEARCH_ANSWERFORMATS_H
