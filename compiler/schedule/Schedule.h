//===- Schedule.h - An order of actions -------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SCHEDULE_H
#define CHIMERA_COMPILER_SCHEDULE_SCHEDULE_H

#include "compiler/schedule/Problem.h"

#include <optional>

namespace chimera::schedule {

struct Action {
  Kind kind;
  int32_t pipeline;
  int32_t stage;
  int32_t microBatch;
  /// How many micro-batches from `microBatch` on, or which of `parts` equal
  /// parts of one.
  uint16_t microBatches = 1;
  uint8_t part = 0;
  uint8_t parts = 1;

  bool operator==(const Action &) const = default;
};

/// The order of actions on every worker, and, where the scheme states them, the
/// slot of each: its position in a table of slots of equal length.
struct Schedule {
  std::vector<std::vector<Action>> workers;
  /// Empty, or one slot for each action, in the same shape as `workers`.
  std::vector<std::vector<int64_t>> slots;
  /// Where steps overlap, what each worker runs once a step: actions [begin,
  /// end) of the first of two steps. Before them it fills the pipeline, and
  /// what is behind them is the last step, which drains it. Else empty.
  struct Body {
    int32_t begin;
    int32_t end;

    bool operator==(const Body &) const = default;
  };
  std::vector<Body> bodies;

  bool hasSlots() const { return !slots.empty(); }
};

/// "forward", "backward", "input_gradient", "weight_gradient".
const char *nameOf(Kind kind);

/// "forward of pipeline 0, stage 1, micro-batch 2".
std::string describe(const Action &action);

/// Gives every action of a problem a number in [0, count()), by stage,
/// micro-batch and kind: a worker's neighbours in time are neighbours in
/// memory. Each micro-batch has one pipeline, so that needs no pipeline.
class ActionIds {
public:
  explicit ActionIds(const Problem &problem)
      : stages(static_cast<int32_t>(problem.stages.size())),
        microBatches(problem.microBatches()),
        kinds(problem.splitBackward ? 3 : 2) {}

  int64_t count() const {
    return static_cast<int64_t>(microBatches) * stages * kinds;
  }
  /// None where the problem has no such action.
  std::optional<int64_t> find(Kind kind, int32_t stage,
                              int32_t microBatch) const {
    int32_t k = kind == Kind::Forward          ? 0
                : kind == Kind::WeightGradient ? 2
                                               : 1;
    if ((kind == Kind::Backward) != (kinds == 2) && k != 0)
      return std::nullopt;
    if (stage < 0 || stage >= stages || microBatch < 0 ||
        microBatch >= microBatches)
      return std::nullopt;
    return at(k, stage, microBatch);
  }
  std::optional<int64_t> find(const Action &action) const {
    return find(action.kind, action.stage, action.microBatch);
  }
  /// The number of the action whose kind comes `k`-th (forward, backward or
  /// input gradient, weight gradient). Requires that it exists.
  int64_t at(int32_t k, int32_t stage, int32_t microBatch) const {
    return (static_cast<int64_t>(stage) * microBatches + microBatch) * kinds +
           k;
  }
  /// The inverse of `find`; `pipelineOf` maps micro-batches to pipelines.
  Action action(int64_t id, const std::vector<int32_t> &pipelineOf) const;

private:
  int32_t stages, microBatches, kinds;
};

/// The pipeline of every micro-batch. Requires a well-formed problem.
std::vector<int32_t> pipelineOfMicroBatch(const Problem &problem);

/// Replaces every backward of `schedule` by its input gradient and, straight
/// after it, its weight gradient. Slots no longer apply and are dropped.
Schedule splitBackwards(const Schedule &schedule);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SCHEDULE_H
