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

inline int64_t Problem::cost(const Action &action) const {
  int64_t whole = cost(action.kind, action.stage) * action.microBatches;
  return action.parts == 1 ? whole : share(whole, action.part, action.parts);
}

/// "forward", "backward", "input_gradient", "weight_gradient", "recompute".
const char *nameOf(Kind kind);

/// "pipeline 0, stage 1, micro-batch 2", with "micro-batches 2 to 3" or
/// "micro-batch 2, part 0 of 2".
std::string labelOf(const Action &action);

/// "forward of " and the label.
std::string describe(const Action &action);

/// The same, but of the second of two steps with the number that the
/// micro-batch has there: "forward of … of the second step".
std::string describe(const Problem &problem, Action action);

/// Gives every action of a problem a number in [0, count()), by stage,
/// micro-batch and kind: a worker's neighbours in time are neighbours in
/// memory. Each micro-batch has one pipeline, so that needs no pipeline. Some
/// numbers stand for nothing where a forward covers several micro-batches,
/// where some backwards are split and others whole, or where pipelines or
/// stages differ in parts or recomputation: see `has`.
class ActionIds {
public:
  /// What a number stands for besides stage and micro-batch.
  enum Place : int32_t { kForward, kBackward, kWeightGradient, kRecompute };

  /// Requires check(problem).empty().
  explicit ActionIds(const Problem &problem);

  int64_t count() const { return stages * row; }
  /// How many actions a schedule has at least: all but those recomputes that it
  /// may leave out.
  int64_t required() const { return needed; }

  /// None where the problem has no such action.
  std::optional<int64_t> find(const Action &action) const {
    if (action.stage < 0 || action.stage >= stages || action.microBatch < 0 ||
        action.microBatch >= microBatches)
      return std::nullopt;
    const Cover &cover = covers[action.microBatch];
    int32_t place = placeOf(action.kind);
    if (action.pipeline != cover.pipeline || place < 0 ||
        (place == kRecompute && !isRecomputed(action.stage)))
      return std::nullopt;
    if (isMixed && (place == kBackward || place == kWeightGradient) &&
        splits.of(action.stage, action.microBatch) !=
            (action.kind != Kind::Backward))
      return std::nullopt;
    bool fits = place == kForward
                    ? action.microBatches == cover.count && action.parts == 1 &&
                          action.part == 0
                    : action.microBatches == 1 && action.parts == cover.parts &&
                          action.part < cover.parts;
    if (!fits || (place == kForward && cover.first != action.microBatch))
      return std::nullopt;
    return at(place, action.stage, action.microBatch, action.part);
  }
  /// The first part, or the forward that covers `microBatch`.
  std::optional<int64_t> find(Kind kind, int32_t stage,
                              int32_t microBatch) const;

  /// The number of an action that exists. A forward is the one that covers
  /// `microBatch`.
  int64_t at(int32_t place, int32_t stage, int32_t microBatch,
             int32_t part = 0) const {
    if (place == kForward)
      return base(stage, covers[microBatch].first);
    return base(stage, microBatch) + offsets[place] + part * eachPart;
  }
  int64_t idOf(const Action &action) const {
    return at(placeOf(action.kind), action.stage, action.microBatch,
              action.part);
  }
  /// The number of the same action `stages` stages on; there is that stage.
  int64_t onward(int64_t id, int32_t stages) const { return id + stages * row; }
  /// The number of the same action `microBatches` later; it may stand for
  /// nothing.
  int64_t later(int64_t id, int32_t microBatches) const {
    return id + microBatches * width;
  }
  /// True if `id` stands for an action.
  bool has(int64_t id) const;
  /// True if a schedule may leave out the action `id`.
  bool isOptional(int64_t id) const;
  /// The inverse of `find`. Requires has(id).
  Action action(int64_t id) const;

private:
  /// What forward and backwards of a micro-batch cover.
  struct Cover {
    int32_t pipeline;
    int32_t first; ///< of the forward's micro-batches
    uint16_t count;
    uint8_t parts;
  };

  int64_t base(int32_t stage, int32_t microBatch) const {
    return stage * row + microBatch * width;
  }
  /// Negative where the problem has no such kind.
  int32_t placeOf(Kind kind) const { return places[static_cast<size_t>(kind)]; }
  bool isRecomputed(int32_t stage) const {
    return recompute[stage] != Recompute::None;
  }

  int32_t stages, microBatches;
  /// Numbers of a stage, and of a micro-batch on it: its forward, then its
  /// parts.
  int64_t row, width;
  int32_t eachPart;
  Splits splits;
  bool isSplit; ///< some backward is
  bool isMixed; ///< and some is not
  int32_t places[5];
  int32_t offsets[4]; ///< of each place in a part, behind the forward
  int64_t needed = 0;
  std::vector<Cover> covers;
  std::vector<Recompute> recompute; ///< of each stage
};

/// The pipeline of every micro-batch. Requires a well-formed problem.
std::vector<int32_t> pipelineOfMicroBatch(const Problem &problem);

/// The schedule with what `visit(out, action)` appends in the place of each
/// action; bodies go with their actions. Slots no longer apply and are dropped.
template <typename Visit>
Schedule replaceActions(const Schedule &schedule, Visit visit) {
  Schedule result;
  result.bodies.resize(schedule.bodies.size());
  for (size_t w = 0; w < schedule.workers.size(); ++w) {
    std::vector<Action> &out = result.workers.emplace_back();
    const std::vector<Action> &actions = schedule.workers[w];
    out.reserve(actions.size() + actions.size() / 2); // two for each backward
    for (size_t i = 0; i <= actions.size(); ++i) {
      auto at = static_cast<int32_t>(i), now = static_cast<int32_t>(out.size());
      if (w < result.bodies.size() && schedule.bodies[w].begin == at)
        result.bodies[w].begin = now;
      if (w < result.bodies.size() && schedule.bodies[w].end == at)
        result.bodies[w].end = now;
      if (i < actions.size())
        visit(out, actions[i]);
    }
  }
  return result;
}

/// Replaces every backward of `schedule` by its input gradient and, straight
/// after it, its weight gradient. Slots no longer apply and are dropped.
Schedule splitBackwards(const Schedule &schedule);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SCHEDULE_H
