//===- Space.h - All possible plans -----------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A question is a model, a machine and a mini-batch. Its space is the set of
// all ways to train the mini-batch on all devices. Such a way is a choice of
// schedule and options, numbers of workers, copies and stages, and micro-batch
// size. Recomputation and the start of all-reduces are not part of the space:
// Evaluate.h decides them for each choice.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLANNER_SEARCH_SPACE_H
#define CHIMERA_COMPILER_PLANNER_SEARCH_SPACE_H

#include "compiler/cost/Model.h"
#include "compiler/planner/search/Pins.h"

namespace chimera::plan {

/// The input of a search: plans for this model on this machine, with one
/// mini-batch a step and the pinned parts.
struct Question {
  cost::Model model;
  cost::Machine machine;
  int64_t batch; ///< samples per step over all copies, 1 to 2^31 - 1
  Pins pins;
  bool clips = false; ///< see schedule::Workload
};

/// A way to train the mini-batch: a scheme with its options, and the numbers
/// that cut the model and the mini-batch.
struct Choice {
  const schedule::Scheme *scheme;
  schedule::Options options; ///< no option is open (schedule::kBest)
  int32_t workers;           ///< D
  int32_t width;             ///< W, data-parallel copies
  int32_t stages;
  int32_t microBatchSize; ///< B, in samples
  int32_t microBatches;   ///< N, per copy
  bool splitBackward;     ///< whether backwards are split
};

/// A choice that was refused, and the reason.
struct Refusal {
  std::string choice; ///< for example "1f1b, D=8, W=4, N=16, B=2"
  std::string reason;
};

struct Space {
  std::vector<Choice> choices;
  /// For each scheme without a choice, the reason. It names a possible
  /// alternative.
  std::vector<Refusal> refusals;
  /// If there is no choice at all, and every combination was refused for the
  /// same reason, this reason. Otherwise empty.
  std::string onlyReason;
};

/// All choices for `question`. The product of D and W is the number of devices.
/// W divides the mini-batch, and B divides the samples of a copy. A worker has
/// 1, 2, 4, … stages. There are at most as many stages as layers.
Space spaceOf(const Question &question);

/// The name of a choice, such as "chimera {concatenation = eager}, D=8, W=4,
/// N=16, B=2, split".
std::string nameOf(const Choice &choice);
/// The scheme and options of a choice, such as "chimera {concatenation =
/// eager}". Options that are open or have their default value are left out.
std::string scheduleOf(const Choice &choice);

/// All divisors of a positive number, ascending.
std::vector<int64_t> divisorsOf(int64_t number);

} // namespace chimera::plan

#endif // CHIMERA_COMPILER_PLANNER_SEARCH_SPACE_H
