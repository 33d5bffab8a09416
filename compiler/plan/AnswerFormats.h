//===- AnswerFormats.h - Answers as tables and pictures ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLAN_ANSWERFORMATS_H
#define CHIMERA_COMPILER_PLAN_ANSWERFORMATS_H

#include "compiler/plan/Search.h"
#include "compiler/plan/Shares.h"

#include <span>
#include <string>

namespace chimera::plan {

/// How many tokens a step of so many nanoseconds trains a second; samples,
/// where the model has no tokens.
double rateOf(const Question &question, double step);
/// "tokens/s" or "samples/s".
const char *rateName(const Question &question);

/// As a pipeline's all_reduce has it.
const char *nameOf(schedule::AllReducePolicy policy);

/// A line for each plan, fastest first: what it is, what a step takes, how many
/// tokens (samples, where the model has no tokens) it trains a second, what of
/// the step is idle, un-overlapped all-reduce, what its largest worker holds
/// and what takes most time of all that another plan could leave out. Numbered
/// from 1, unless it is not the table that --pick and --explain mean.
std::string tableOf(const Question &question, std::span<const Detail> details,
                    bool isNumbered = true);

/// A line for each scheme: how many plans there are, how many of them were
/// simulated, ruled out by a bound, or do not fit into the memory, and why
/// others are none.
std::string talliesOf(const Question &question, const Space &space,
                      const Answer &answer);

/// Two plans side by side: where the time of one goes that the other saves.
std::string explain(const Detail &one, const Detail &other);

/// An SVG picture of all plans that were simulated: the time of a step, and
/// what the largest worker holds, with the memory and the line of those plans
/// that no other beats in both.
std::string pictureOf(const Question &question, const Answer &answer);

} // namespace chimera::plan

#endif // CHIMERA_COMPILER_PLAN_ANSWERFORMATS_H
