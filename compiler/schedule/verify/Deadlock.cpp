//===- Deadlock.cpp - Workers that wait for each other --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/verify/Deadlock.h"

#include <algorithm>

namespace chimera::schedule {

namespace {

/// The report of a deadlock.
class DeadlockReport {
public:
  DeadlockReport(PlacedActions &actions, const Stuck &stuck)
      : actions(actions), stuck(stuck) {}

  /// There is at least one cycle, because every waiting worker waits for a
  /// worker that waits too.
  void report() {
    int64_t others =
        std::ssize(stuck.waitsFor) -
        std::ranges::count(stuck.waitsFor, PlacedActions::kNoAction);
    bool isWhole = true;
    for (const std::vector<size_t> &cycle : findCycles()) {
      if (std::ranges::any_of(cycle,
                              [&](size_t w) { return isStuckAtOrder(w); })) {
        isWhole = false;
        continue;
      }
      for (size_t w : cycle) {
        --others;
        reportWait(w);
      }
    }
    // If a cycle is left out, the other workers may wait for that cycle only.
    if (!isWhole || others == 0)
      return;
    // This note has no place of its own. As the first note it directly follows
    // the error, whose place tools have just shown.
    std::vector<Violation::Note> &notes = actions.violations.back().notes;
    notes.insert(notes.begin(),
                 {std::to_string(others) +
                  (others == 1 ? " more worker waits" : " more workers wait") +
                  " for these workers"});
  }

private:
  /// The worker that `worker` waits for: the next action of `worker` depends on
  /// an action of that worker. That worker is stuck too, at the awaited action
  /// or before it.
  size_t awaitedBy(size_t worker) const {
    return actions.workerAt(actions.positionOf[stuck.waitsFor[worker]]);
  }

  /// True if the action at which `worker` is stuck violates the order
  /// constraint. If it were later, where it belongs, the worker might run the
  /// actions that others wait for.
  bool isStuckAtOrder(size_t worker) const {
    const Action &action = actions.schedule.workers[worker][stuck.next[worker]];
    const int64_t position =
        actions.first[worker] + static_cast<int64_t>(stuck.next[worker]);
    return !actions.forEachDependency(
        action, actions.idAt[position], [&](int64_t dependency) {
          return !actions.isLaterOnWorker(dependency, position, worker);
        });
  }

  /// All cycles of workers that wait for each other, the shortest first. Each
  /// cycle starts with its lowest worker. A worker waits for only one other
  /// worker, so cycles do not share workers.
  std::vector<std::vector<size_t>> findCycles() const {
    constexpr size_t kNobody = SIZE_MAX;
    std::vector<std::vector<size_t>> cycles;
    std::vector<size_t> visitedFrom(actions.schedule.workers.size(), kNobody);
    for (size_t w = 0; w < visitedFrom.size(); ++w) {
      if (stuck.waitsFor[w] == PlacedActions::kNoAction)
        continue;
      size_t v = w;
      for (; visitedFrom[v] == kNobody; v = awaitedBy(v))
        visitedFrom[v] = w;
      if (visitedFrom[v] != w)
        continue; // ends at a worker that was visited before
      std::vector<size_t> &cycle = cycles.emplace_back();
      for (size_t u = v; cycle.empty() || u != v; u = awaitedBy(u))
        cycle.push_back(u);
      std::ranges::rotate(cycle, std::ranges::min_element(cycle));
    }
    std::ranges::sort(cycles, {}, [](const std::vector<size_t> &cycle) {
      return std::pair(cycle.size(), cycle.front());
    });
    return cycles;
  }

  /// Reports that `worker` waits for another worker: for the action at which
  /// the other worker is stuck, or for a later action.
  void reportWait(size_t worker) {
    size_t other = awaitedBy(worker);
    int64_t awaited = stuck.waitsFor[worker];
    int64_t index = actions.positionOf[awaited] - actions.first[other];
    auto next = static_cast<int64_t>(stuck.next[other]);
    std::string before;
    if (index != next)
      before = (index > next ? " before " : " without ") +
               actions.describe(actions.schedule.workers[other][next]);
    if (index < next)
      before += ", with which it is paired";
    actions.report(
        Violation::Constraint::Deadlock,
        actions.first[worker] + static_cast<int64_t>(stuck.next[worker]),
        "deadlock: worker " + std::to_string(worker) + " cannot run " +
            actions.describe(
                actions.schedule.workers[worker][stuck.next[worker]]) +
            ", because it waits for " + actions.describeId(awaited) +
            ", which worker " + std::to_string(other) + " cannot run" + before);
    // If the other worker is stuck at the awaited action itself, the
    // report of the other worker has the place of this action.
    if (index != next)
      actions.violations.back().notes.push_back(
          {actions.describeId(awaited) + " is here",
           static_cast<int32_t>(other), static_cast<int32_t>(index)});
  }

  PlacedActions &actions;
  const Stuck &stuck;
};

} // namespace

Stuck runWithoutTimes(const PlacedActions &actions) {
  constexpr int32_t kPending = -1, kDone = -2;
  size_t workers = actions.schedule.workers.size();
  Stuck stuck;
  stuck.next.assign(workers, 0);
  stuck.waitsFor.assign(workers, PlacedActions::kNoAction);
  // For each action: kPending, kDone, or a worker that waits for it. A worker
  // waits for at most one action, so `alsoWaiting` can link the other workers
  // that wait for the same action.
  std::vector<int32_t> state(actions.ids.count(), kPending),
      alsoWaiting(workers);
  for (int64_t id = 0; id < actions.ids.count(); ++id)
    if (actions.positionOf[id] == PlacedActions::kNowhere)
      state[id] = kDone;
  std::vector<int32_t> ready;
  for (size_t w = workers; w-- > 0;)
    ready.push_back(static_cast<int32_t>(w));
  while (!ready.empty()) {
    size_t w = ready.back();
    ready.pop_back();
    std::span<const Action> order = actions.schedule.workers[w];
    size_t i = stuck.next[w];
    int64_t waitsFor = PlacedActions::kNoAction;
    auto complete = [&](size_t index) {
      int64_t id = actions.idAt[actions.first[w] + static_cast<int64_t>(index)];
      if (id == PlacedActions::kNoAction)
        return;
      for (int32_t v = state[id]; v >= 0; v = alsoWaiting[v])
        ready.push_back(v);
      state[id] = kDone;
    };
    // The first action that has not ended. Joined actions all end when the last
    // of them can run.
    while (joinsPrevious(order, i))
      --i;
    size_t begin = i;
    for (; i < order.size(); ++i) {
      int64_t position = actions.first[w] + static_cast<int64_t>(i);
      int64_t id = actions.idAt[position];
      auto isMet = [&](int64_t dependency) {
        if (state[dependency] == kDone)
          return true;
        int64_t at = actions.positionOf[dependency];
        bool isInPair = at < position &&
                        at >= actions.first[w] + static_cast<int64_t>(begin);
        if (isInPair || actions.isLaterOnWorker(dependency, position, w)) {
          stuck.ignoredDependency = true;
          return true;
        }
        waitsFor = dependency;
        return false;
      };
      if (id != PlacedActions::kNoAction)
        actions.forEachDependency(order[i], id, isMet);
      if (waitsFor != PlacedActions::kNoAction) {
        alsoWaiting[w] = state[waitsFor];
        state[waitsFor] = static_cast<int32_t>(w);
        break;
      }
      if (order[i].joinedWithNext && i + 1 < order.size())
        continue;
      while (begin <= i)
        complete(begin++);
    }
    stuck.next[w] = i;
    stuck.waitsFor[w] = waitsFor;
  }
  for (int64_t dependency : stuck.waitsFor)
    stuck.any |= dependency != PlacedActions::kNoAction;
  return stuck;
}

void reportDeadlock(PlacedActions &actions, const Stuck &stuck) {
  DeadlockReport(actions, stuck).report();
}

} // namespace chimera::schedule
