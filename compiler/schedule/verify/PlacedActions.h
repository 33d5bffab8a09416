//===- PlacedActions.h - The positions of a schedule's actions --*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The data that all checks of the verifier use: the position of each action,
// its dependencies, and the violations found so far.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_VERIFY_PLACEDACTIONS_H
#define CHIMERA_COMPILER_SCHEDULE_VERIFY_PLACEDACTIONS_H

#include "compiler/schedule/model/Schedule.h"
#include "compiler/schedule/verify/Violation.h"

#include <algorithm>

namespace chimera::schedule {

/// A problem, a schedule and the *position* of each action. A position is an
/// index into the orders of all workers, concatenated.
struct PlacedActions {
  using Constraint = Violation::Constraint;

  static constexpr int64_t kNowhere = -1;
  static constexpr int64_t kNoAction = -1;

  PlacedActions(const Problem &problem, const Schedule &schedule)
      : problem(problem), schedule(schedule), ids(problem),
        stages(static_cast<int32_t>(problem.stages.size())),
        positionOf(ids.count(), kNowhere) {
    first.push_back(0);
    for (const std::vector<Action> &order : schedule.workers)
      first.push_back(first.back() + std::ssize(order));
    idAt.assign(first.back(), kNoAction);
  }

  void report(Constraint constraint, std::string message) {
    violations.push_back({constraint, std::move(message)});
  }
  /// Reports a violation by the action at `position`.
  void report(Constraint constraint, int64_t position, std::string message) {
    size_t w = workerAt(position);
    violations.push_back({constraint, std::move(message),
                          static_cast<int32_t>(w),
                          static_cast<int32_t>(position - first[w])});
  }
  static std::string onWorker(size_t worker) {
    return "worker " + std::to_string(worker) + ": ";
  }
  std::string describe(const Action &action) const {
    return schedule::describe(problem, action);
  }
  std::string describeId(int64_t id) const { return describe(ids.action(id)); }

  size_t workerAt(int64_t position) const {
    return std::upper_bound(first.begin(), first.end(), position) -
           first.begin() - 1;
  }

  /// True if `worker` runs the action `id` later than `position`. If the action
  /// at `position` depends on the action `id`, the worker would wait for
  /// itself.
  bool isLaterOnWorker(int64_t id, int64_t position, size_t worker) const {
    return positionOf[id] > position && positionOf[id] < first[worker + 1];
  }

  /// Calls `visit(worker, action, id)` for each action of the problem that is
  /// in the schedule, at its first position.
  template <typename Visit> void forEachKnown(Visit visit) const {
    for (size_t w = 0; w < schedule.workers.size(); ++w)
      for (size_t i = 0; i < schedule.workers[w].size(); ++i)
        if (int64_t id = idAt[first[w] + i]; id != kNoAction)
          visit(w, schedule.workers[w][i], id);
  }

  /// Calls `visit(id)` for each dependency of `action`, whose own id is `own`.
  /// Stops and returns false when a call returns false. The simulator has its
  /// own code for dependencies (ActionRules.h) on purpose: if one of the two
  /// has an error, tests that use both fail.
  template <typename Visit>
  bool forEachDependency(const Action &action, int64_t own, Visit visit) const {
    using Ids = ActionIds;
    int32_t s = action.stage, m = action.microBatch, part = action.part;
    auto gradient = [&](int64_t backward) {
      return s + 1 == stages || visit(ids.atLaterStage(backward, 1));
    };
    switch (action.kind) {
    case Kind::Forward:
      return s == 0 || visit(ids.atLaterStage(own, -1));
    case Kind::Backward:
    case Kind::InputGradient:
      return visit(ids.idOf(Ids::kForward, s, m)) && gradient(own) &&
             (problem.recomputeOf(s) == Recompute::None ||
              visit(ids.idOf(Ids::kRecompute, s, m, part)));
    case Kind::WeightGradient:
      return visit(ids.idOf(Ids::kBackward, s, m, part));
    case Kind::Recompute:
      return visit(ids.idOf(Ids::kForward, s, m)) &&
             (problem.recomputeOf(s) != Recompute::Fused ||
              gradient(ids.idOf(Ids::kBackward, s, m, part)));
    }
    return true;
  }

  const Problem &problem;
  const Schedule &schedule;
  ActionIds ids;
  int32_t stages;
  /// Position of each action, kNowhere if it is not in the schedule.
  std::vector<int64_t> positionOf;
  /// The id of the action at each position. kNoAction if the problem has no
  /// such action, or if the action is in the schedule before this position.
  std::vector<int64_t> idAt;
  /// Position of each worker's first action, then the number of positions.
  std::vector<int64_t> first;
  std::vector<Violation> violations;
};

/// Checks steps that overlap: bodies must be able to repeat, the prologue must
/// have the right forwards, and forwards must read existing versions of
/// weights. Returns the violations that are in `actions` already, and the new
/// violations. Requires that `actions` has the position of each action.
std::vector<Violation> verifySteps(PlacedActions &&actions);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_VERIFY_PLACEDACTIONS_H
