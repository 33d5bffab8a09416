//===- Space.h - The plans that there are -----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A question is a model, a machine and a mini-batch. Its space is every way to
// train the mini-batch on all devices: a schedule with its options, how many
// workers and copies, how many stages, how large a micro-batch. How much is
// recomputed and when gradients are summed is decided for each way by itself
// (Evaluate.h).
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLAN_SPACE_H
#define CHIMERA_COMPILER_PLAN_SPACE_H

#include "compiler/plan/Model.h"
#include "compiler/plan/Pins.h"

namespace chimera::plan {

struct Question {
  Model model;
  Machine machine;
  int64_t batch; ///< samples of a step, over all copies; 1 to 2^31 - 1
  Pins pins;
};

/// A way to train the mini-batch.
struct Choice {
  const schedule::Scheme *scheme;
  schedule::Options options; ///< none open
  int32_t workers;           ///< D
  int32_t width;             ///< W, copies of all workers
  int32_t stages;
  int32_t microBatchSize; ///< B, in samples
  int32_t microBatches;   ///< N, of one copy
  bool split;             ///< whether backwards are
};

/// Why a scheme has no choice.
struct Refusal {
  std::string what; ///< "1f1b, D=8, W=4, N=16, B=2"
  std::string reason;
};

struct Space {
  std::vector<Choice> choices;
  /// Of each scheme without a choice, in words that name what is possible
  /// instead.
  std::vector<Refusal> refusals;
  /// Where there is no choice at all, the reason that every way to train the
  /// mini-batch was refused for; empty where there are several reasons.
  std::string onlyReason;
};

/// All choices for `question`: D and W whose product is the number of devices,
/// of W that divide the batch, B that divide what a copy gets, and 1, 2, 4, …
/// stages a worker as far as there are layers.
Space spaceOf(const Question &question);

/// "chimera {concatenation = eager}, D=8, W=4, N=16, B=2, split".
std::string nameOf(const Choice &choice);
/// "chimera {concatenation = eager}": options that are set, and not open.
std::string scheduleOf(const Choice &choice);

/// Of a positive number, ascending.
std::vector<int64_t> divisorsOf(int64_t number);

} // namespace chimera::plan

#endif // CHIMERA_COMPILER_PLAN_SPACE_H
