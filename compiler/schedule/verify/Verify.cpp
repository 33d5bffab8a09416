//===- Verify.cpp - The constraints of a valid schedule -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/verify/Verify.h"

#include "compiler/schedule/simulate/Memory.h"
#include "compiler/schedule/verify/Deadlock.h"
#include "compiler/schedule/verify/PlacedActions.h"

#include <algorithm>

namespace chimera::schedule {

namespace {

using Constraint = Violation::Constraint;

class Verifier : private PlacedActions {
public:
  using PlacedActions::PlacedActions;

  std::vector<Violation> run() {
    checkActions();
    checkJoined();
    const Stuck stuck = runWithoutTimes(*this);
    if (stuck.any || stuck.ignoredDependency)
      checkOrder();
    if (stuck.any)
      reportDeadlock(*this, stuck);
    // Missing actions are reported last, because there may be many.
    if (required < ids.required())
      checkMissing();
    if (schedule.hasSlots())
      checkSlots();
    checkMemory();
    if (stepsOverlap(problem.updates))
      return verifySteps(std::move(*this));
    return std::move(violations);
  }

private:
  void checkActions() {
    if (schedule.workers.size() != static_cast<size_t>(problem.workers))
      report(Constraint::Placement,
             "expected orders for " + std::to_string(problem.workers) +
                 " workers, got " + std::to_string(schedule.workers.size()));
    for (size_t w = 0; w < schedule.workers.size(); ++w) {
      int64_t position = first[w];
      for (const Action &action : schedule.workers[w]) {
        std::optional<int64_t> id = ids.find(action);
        bool isNew = id && positionOf[*id] == kNowhere;
        if (!isNew || workerOf(action) != w)
          reportAction(w, position, action, id);
        if (isNew) {
          positionOf[*id] = position;
          idAt[position] = *id;
          ++placed;
          required += action.kind != Kind::Recompute || !ids.isOptional(*id);
        }
        ++position;
      }
    }
  }

  /// Checks that joined actions are a pair whose actions do not depend on each
  /// other, or weight gradients of one stage.
  void checkJoined() {
    for (size_t w = 0; w < schedule.workers.size(); ++w) {
      const std::vector<Action> &order = schedule.workers[w];
      for (size_t i = 0; i < order.size(); ++i)
        if (order[i].joinedWithNext)
          checkJoined(w, i, i + 1 < order.size() ? &order[i + 1] : nullptr);
    }
  }

  void checkJoined(size_t worker, size_t index, const Action *next) {
    const Action &action = schedule.workers[worker][index];
    const bool isPair = action.kind == Kind::Forward;
    const int64_t position = first[worker] + static_cast<int64_t>(index);
    auto refuse = [&](const std::string &why) {
      report(Constraint::Order, position,
             onWorker(worker) + describe(action) + " cannot be " +
                 (isPair ? "paired" : "joined") + " with " +
                 (next ? describe(*next) : "nothing") + ": " + why);
    };
    if (stepsOverlap(problem.updates))
      return refuse("pairs and joint weight gradients need a flush at the end "
                    "of each step");
    if (isPair)
      return checkPair(position, next, refuse);
    if (action.kind != Kind::WeightGradient)
      return refuse("only forwards and weight gradients are joined with the "
                    "next action");
    if (!next || next->kind != Kind::WeightGradient ||
        next->pipeline != action.pipeline || next->stage != action.stage)
      refuse("a joint weight gradient has weight gradients of one stage");
  }

  template <typename Refuse>
  void checkPair(int64_t position, const Action *second, Refuse refuse) {
    if (!second || !makesGradient(second->kind))
      return refuse("a pair is a forward and then a backward or an input "
                    "gradient");
    const int64_t id = idAt[position], next = idAt[position + 1];
    if (id != kNoAction && next != kNoAction &&
        !forEachDependency(*second, next, [&](int64_t dependency) {
          return dependency != id;
        }))
      refuse("the second needs the result of the first");
  }

  /// If the problem does not have `action` but has a similar one, an
  /// explanation of the difference.
  std::string whyUnknown(Action action) const {
    auto has = [&](Kind kind) {
      Action other = action;
      other.kind = kind;
      return ids.find(other).has_value();
    };
    if (action.kind == Kind::Backward && has(Kind::InputGradient))
      return ": this backward is split, so write I (its input gradient) here, "
             "and W (its weight gradient) here or later (zero-bubble papers "
             "write B and W: chimera-show --zero-bubble-notation reads a file "
             "of them)";
    if ((action.kind == Kind::InputGradient ||
         action.kind == Kind::WeightGradient) &&
        has(Kind::Backward))
      return ": this backward is whole, so write B";
    if (action.kind == Kind::Recompute &&
        (has(Kind::Backward) || has(Kind::InputGradient)))
      return ": this stage is not recomputed";
    return {};
  }

  void reportAction(size_t worker, int64_t position, const Action &action,
                    std::optional<int64_t> id) {
    if (!id)
      return report(Constraint::UnknownAction, position,
                    onWorker(worker) + "unknown action " + describe(action) +
                        whyUnknown(action));
    if (workerOf(action) != worker)
      report(Constraint::Placement, position,
             onWorker(worker) + describe(action) + " belongs on worker " +
                 std::to_string(workerOf(action)));
    if (positionOf[*id] != kNowhere)
      report(Constraint::Duplicate, position,
             onWorker(worker) + describe(action) + " is in the order twice");
  }

  size_t workerOf(const Action &action) const {
    return problem.pipelines[action.pipeline].workers[action.stage];
  }

  /// Calls `visit(id, worker)` for each action that is missing, with its
  /// worker.
  template <typename Visit> void forEachMissing(Visit visit) const {
    for (int64_t id = 0; id < ids.count(); ++id)
      if (positionOf[id] == kNowhere && ids.has(id) && !ids.isOptional(id))
        visit(id, workerOf(ids.action(id)));
  }

  /// For each worker, the indices of its violations `constraint`, at most two.
  std::vector<std::vector<size_t>> firstOfEachWorker(Constraint constraint) {
    std::vector<std::vector<size_t>> found(problem.workers);
    for (size_t i = 0; i < violations.size(); ++i)
      if (const Violation &each = violations[i];
          each.constraint == constraint && each.worker < problem.workers &&
          found[each.worker].size() < 2)
        found[each.worker].push_back(i);
    return found;
  }

  /// If a worker has one action twice and lacks one, both are one mistake and
  /// one report.
  void checkMissing() {
    const std::vector<std::vector<size_t>> twice =
        firstOfEachWorker(Constraint::Duplicate);
    std::vector<int64_t> counts(problem.workers);
    forEachMissing([&](int64_t, size_t worker) { ++counts[worker]; });
    forEachMissing([&](int64_t id, size_t worker) {
      if (counts[worker] == 1 && twice[worker].size() == 1)
        violations[twice[worker].front()].message +=
            ": is " + describeId(id) + " meant, which is missing?";
      else
        violations.push_back({Constraint::Missing,
                              describeId(id) + " is missing",
                              static_cast<int32_t>(worker)});
    });
  }

  /// Checks the dependencies between actions of one worker: on the same stage,
  /// and on the stage before or after if the worker has that stage too.
  void checkOrder() {
    forEachKnown([&](size_t w, const Action &action, int64_t id) {
      forEachDependency(action, id, [&](int64_t dependency) {
        if (isLaterOnWorker(dependency, positionOf[id], w))
          reportOrder(w, positionOf[id], action, ids.action(dependency));
        return true;
      });
    });
  }

  void reportOrder(size_t worker, int64_t position, const Action &action,
                   const Action &dependency) {
    std::string stage;
    if (dependency.stage != action.stage)
      stage = " of stage " + std::to_string(dependency.stage);
    report(Constraint::Order, position,
           onWorker(worker) + describe(action) + " must come after the " +
               nameOf(dependency.kind) + stage + " that it depends on");
  }

  /// Checks that slots increase on each worker, and that each dependency has an
  /// earlier slot.
  void checkSlots() {
    bool fits = schedule.slots.size() == schedule.workers.size();
    for (size_t w = 0; fits && w < schedule.workers.size(); ++w)
      fits = schedule.slots[w].size() == schedule.workers[w].size();
    if (!fits)
      return report(Constraint::Slots, "expected a slot for each action");
    std::vector<int64_t> slots;
    for (const std::vector<int64_t> &row : schedule.slots)
      slots.insert(slots.end(), row.begin(), row.end());
    for (size_t w = 0; w < schedule.workers.size(); ++w)
      for (size_t i = 0; i < schedule.workers[w].size(); ++i) {
        int64_t position = first[w] + static_cast<int64_t>(i);
        const Action &action = schedule.workers[w][i];
        int64_t slot = slots[position];
        if (joinsPrevious(schedule.workers[w], i) &&
            slot != slots[position - 1] + 1)
          report(Constraint::Slots, position,
                 onWorker(w) + "expected " + describe(action) + " in slot " +
                     std::to_string(slots[position - 1] + 1) +
                     (endsPair(schedule.workers[w], i)
                          ? ", right after the forward with which it is paired"
                          : ", right after the weight gradient with which it "
                            "is joined") +
                     ", got slot " + std::to_string(slot));
        else if (slot < 0 || (i > 0 && slot <= slots[position - 1]))
          report(Constraint::Slots, position,
                 onWorker(w) +
                     "expected a slot after that of the previous action, got "
                     "slot " +
                     std::to_string(slot) + " for " + describe(action));
        if (idAt[position] == kNoAction)
          continue;
        forEachDependency(action, idAt[position], [&](int64_t dependency) {
          int64_t at = positionOf[dependency];
          // The order constraint covers a dependency on the same worker.
          bool here = at >= first[w] && at < first[w + 1];
          if (at != kNowhere && !here && slots[at] >= slot)
            report(Constraint::Slots, position,
                   describe(action) + " in slot " + std::to_string(slot) +
                       " depends on " + describeId(dependency) +
                       ", which is not in an earlier slot, but in slot " +
                       std::to_string(slots[at]));
          return true;
        });
      }
  }

  void checkMemory() {
    size_t workers =
        std::min(problem.memoryCaps.size(), schedule.workers.size());
    std::vector<int64_t> resident = residentBytes(problem);
    MemoryPeaks peaks(problem);
    std::vector<Action> known;
    for (size_t w = 0; w < workers; ++w) {
      std::span<const Action> order = schedule.workers[w];
      if (placed < std::ssize(idAt)) {
        known.clear();
        for (size_t i = 0; i < order.size(); ++i)
          if (idAt[first[w] + i] != kNoAction)
            known.push_back(order[i]);
        order = known;
      }
      MemoryPeak peak = peaks.peakOf(order, resident[w]);
      if (peak.bytes <= problem.memoryCaps[w])
        continue;
      std::string when = "before its first action";
      if (peak.index >= 0)
        when = "at " + describe(order[peak.index]);
      report(Constraint::Memory, "worker " + std::to_string(w) + " needs " +
                                     std::to_string(peak.bytes) + " bytes " +
                                     when + ", more than its cap of " +
                                     std::to_string(problem.memoryCaps[w]));
    }
  }

  /// The number of the problem's actions that are in the schedule, and how many
  /// of these actions are required.
  int64_t placed = 0, required = 0;
};

} // namespace

const char *nameOf(Constraint constraint) {
  switch (constraint) {
  case Constraint::UnknownAction:
    return "unknown-action";
  case Constraint::Missing:
    return "missing";
  case Constraint::Duplicate:
    return "duplicate";
  case Constraint::Placement:
    return "placement";
  case Constraint::Order:
    return "order";
  case Constraint::Deadlock:
    return "deadlock";
  case Constraint::Slots:
    return "slots";
  case Constraint::Memory:
    return "memory";
  case Constraint::Period:
    return "period";
  case Constraint::Versions:
    return "versions";
  }
  return "unknown";
}

std::vector<Violation> verify(const Problem &problem,
                              const Schedule &schedule) {
  return Verifier(problem, schedule).run();
}

} // namespace chimera::schedule
