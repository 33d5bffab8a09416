//===- Schedule.h - An order of actions -------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_MODEL_SCHEDULE_H
#define CHIMERA_COMPILER_SCHEDULE_MODEL_SCHEDULE_H

#include "compiler/schedule/model/Problem.h"

#include <optional>

namespace chimera::schedule {

/// The order of actions on every worker. A scheme may also give each action a
/// slot: its column in a table of slots of equal length.
struct Schedule {
  std::vector<std::vector<Action>> workers;
  /// The slot of each action, in the shape of `workers`. Empty: no slots.
  std::vector<std::vector<int64_t>> slots;
  /// The actions [begin, end) that a worker repeats once a step, if steps
  /// overlap. An order of two steps is a prologue, one body and an epilogue.
  /// The prologue runs the first forwards of a step and so fills the pipeline.
  /// The body runs the rest of that step and the first forwards of the next
  /// one. The epilogue runs the rest of the last step and so drains the
  /// pipeline. There are no bodies if steps do not overlap.
  struct Body {
    int32_t begin;
    int32_t end;

    bool operator==(const Body &) const = default;
  };
  std::vector<Body> bodies;

  bool hasSlots() const { return !slots.empty(); }
};

/// Whether `action` is the first of a pair.
inline bool beginsPair(const Action &action) {
  return action.joinedWithNext && action.kind == Kind::Forward;
}

/// Whether the action at `index` of a worker's order is the second of a pair.
inline bool endsPair(std::span<const Action> order, size_t index) {
  return index > 0 && beginsPair(order[index - 1]);
}

/// Whether a worker runs the action at `index` of its order as one with the
/// action before it.
inline bool joinsPrevious(std::span<const Action> order, size_t index) {
  return index > 0 && order[index - 1].joinedWithNext;
}

/// Whether some actions of `schedule` are joined.
bool hasJoined(const Schedule &schedule);

/// "forward of " and the label. Names the pipeline if the problem has several.
/// If the problem has two steps and the action is in the second, the
/// micro-batch is numbered within that step: "forward of … of the second step".
std::string describe(const Problem &problem, Action action);

/// Dense numbers (ids) for all actions of a problem, in [0, count()). Ids are
/// ordered by stage, then micro-batch, then kind, so actions that follow each
/// other on a worker are close in memory. The pipeline follows from the
/// micro-batch. Some ids have no action (see `has`): if a forward covers
/// several micro-batches, if some backwards are split and others whole, or if
/// pipelines differ in parts or stages in recomputation.
class ActionIds {
public:
  /// The kind of an action as its id encodes it. A backward and an input
  /// gradient have the same index.
  enum KindIndex : int32_t { kForward, kBackward, kWeightGradient, kRecompute };

  /// Requires check(problem).empty().
  explicit ActionIds(const Problem &problem);

  int64_t count() const { return stages * row; }
  /// The smallest number of actions in a valid schedule: all except early
  /// recomputes, which may be left out.
  int64_t required() const { return needed; }

  /// The id of `action`, or nothing if the problem has no such action.
  std::optional<int64_t> find(const Action &action) const {
    if (action.stage < 0 || action.stage >= stages || action.microBatch < 0 ||
        action.microBatch >= microBatches)
      return std::nullopt;
    const Cover &cover = covers[action.microBatch];
    int32_t kindIndex = kindIndexOf(action.kind);
    if (action.pipeline != cover.pipeline || kindIndex < 0 ||
        (kindIndex == kRecompute && !isRecomputed(action.stage)))
      return std::nullopt;
    if (isMixed && (kindIndex == kBackward || kindIndex == kWeightGradient) &&
        splits.isSplit(action.stage, action.microBatch) !=
            (action.kind != Kind::Backward))
      return std::nullopt;
    bool fits = kindIndex == kForward
                    ? action.microBatches == cover.count && action.parts == 1 &&
                          action.part == 0
                    : action.microBatches == 1 && action.parts == cover.parts &&
                          action.part < cover.parts;
    if (!fits || (kindIndex == kForward && cover.first != action.microBatch))
      return std::nullopt;
    return idOf(kindIndex, action.stage, action.microBatch, action.part);
  }
  /// The id of the forward that covers `microBatch` or, for any other kind, of
  /// the first part of the action. Nothing if the problem has no such action.
  std::optional<int64_t> find(Kind kind, int32_t stage,
                              int32_t microBatch) const;

  /// The id of an action. For kForward, it is the id of the forward that covers
  /// `microBatch`. Requires that the problem has the action.
  int64_t idOf(int32_t kindIndex, int32_t stage, int32_t microBatch,
               int32_t part = 0) const {
    if (kindIndex == kForward)
      return base(stage, covers[microBatch].first);
    return base(stage, microBatch) + offsets[kindIndex] + part * eachPart;
  }
  int64_t idOf(const Action &action) const {
    return idOf(kindIndexOf(action.kind), action.stage, action.microBatch,
                action.part);
  }
  /// The id of the same action `stages` stages later. Requires that this stage
  /// exists.
  int64_t atLaterStage(int64_t id, int32_t stages) const {
    return id + stages * row;
  }
  /// The id of the same action `microBatches` micro-batches later. That id may
  /// have no action.
  int64_t atLaterMicroBatch(int64_t id, int32_t microBatches) const {
    return id + microBatches * width;
  }
  /// True if `id` has an action.
  bool has(int64_t id) const;
  /// True if a schedule may leave out the action `id` (an early recompute).
  bool isOptional(int64_t id) const;
  /// The action of `id`. Requires has(id).
  Action action(int64_t id) const;

private:
  /// The pipeline of a micro-batch, the forward that covers it, and the number
  /// of parts of its backward.
  struct Cover {
    int32_t pipeline;
    int32_t first; ///< first micro-batch of the forward
    uint16_t count;
    uint8_t parts;
  };

  int64_t base(int32_t stage, int32_t microBatch) const {
    return stage * row + microBatch * width;
  }
  /// Negative if the problem has no action of this kind.
  int32_t kindIndexOf(Kind kind) const {
    return kindIndices[static_cast<size_t>(kind)];
  }
  bool isRecomputed(int32_t stage) const {
    return recompute[stage] != Recompute::None;
  }

  int32_t stages, microBatches;
  /// The number of ids of a stage (`row`) and of a micro-batch on it (`width`).
  /// A micro-batch has one id for its forward, then `eachPart` ids for each
  /// part.
  int64_t row, width;
  int32_t eachPart;
  Splits splits;
  bool isSplit; ///< some backward is split
  bool isMixed; ///< some backward is split and some is whole
  int32_t kindIndices[5];
  int32_t offsets[4]; ///< by kind index: the id of this kind in part 0, minus
                      ///< the id of the forward
  int64_t needed = 0;
  std::vector<Cover> covers;
  std::vector<Recompute> recompute; ///< of each stage
};

/// The pipeline of every micro-batch. Requires a well-formed problem.
std::vector<int32_t> pipelineOfMicroBatch(const Problem &problem);

/// A copy of `schedule` in which each action is replaced by the actions that
/// `visit(out, action)` appends. Each body then has the replacements of its
/// actions. The result has no slots, because the slots of `schedule` belong to
/// the replaced actions.
template <typename Visit>
Schedule replaceActions(const Schedule &schedule, Visit visit) {
  Schedule result;
  result.bodies.resize(schedule.bodies.size());
  for (size_t w = 0; w < schedule.workers.size(); ++w) {
    std::vector<Action> &out = result.workers.emplace_back();
    const std::vector<Action> &actions = schedule.workers[w];
    // Reserves half as much again: one action may become two, but at most every
    // second action is a backward.
    out.reserve(actions.size() + actions.size() / 2);
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

/// A copy of `schedule` in which every backward is replaced by its input
/// gradient and, directly after that, its weight gradient. The result has no
/// slots.
Schedule splitBackwards(const Schedule &schedule);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_MODEL_SCHEDULE_H
