//===- Verify.cpp - What a valid schedule satisfies -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Verify.h"

#include "compiler/schedule/Simulate.h"

namespace chimera::schedule {

namespace {

using Constraint = Violation::Constraint;

class Verifier {
public:
  Verifier(const Problem &problem, const Schedule &schedule)
      : problem(problem), schedule(schedule), ids(problem),
        pipelineOf(pipelineOfMicroBatch(problem)), position(ids.count(), -1) {}

  std::vector<Violation> run() {
    checkActions();
    checkMissing();
    checkOrder();
    if (violations.empty())
      checkDeadlock();
    if (violations.empty() && schedule.hasSlots())
      checkSlots();
    return std::move(violations);
  }

private:
  void report(Constraint constraint, std::string message) {
    violations.push_back({constraint, std::move(message)});
  }

  void checkActions() {
    if (schedule.workers.size() != static_cast<size_t>(problem.workers))
      report(Constraint::Placement,
             "expected orders for " + std::to_string(problem.workers) +
                 " workers, got " + std::to_string(schedule.workers.size()));
    for (size_t w = 0; w < schedule.workers.size(); ++w)
      for (size_t i = 0; i < schedule.workers[w].size(); ++i)
        checkAction(schedule.workers[w][i], w, i);
  }

  void checkAction(const Action &action, size_t worker, size_t index) {
    std::string name =
        "worker " + std::to_string(worker) + ": " + describe(action);
    std::optional<int64_t> id = ids.find(action);
    if (!id || pipelineOf[action.microBatch] != action.pipeline)
      return report(Constraint::UnknownAction,
                    name + " is no action of the problem");
    if (position[*id] >= 0)
      return report(Constraint::Duplicate, name + " stands twice");
    position[*id] = static_cast<int64_t>(index);
    int32_t place = problem.pipelines[action.pipeline].workers[action.stage];
    if (place != static_cast<int32_t>(worker))
      report(Constraint::Placement,
             name + " belongs on worker " + std::to_string(place));
  }

  void checkMissing() {
    for (int64_t id = 0; id < ids.count(); ++id)
      if (position[id] < 0)
        report(Constraint::Missing,
               describe(ids.action(id, pipelineOf)) + " is missing");
  }

  /// Dependencies inside one worker: a forward before its backward, an input
  /// gradient before its weight gradient.
  void checkOrder() {
    int32_t kinds = problem.splitBackward ? 3 : 2;
    auto stages = static_cast<int32_t>(problem.stages.size());
    for (int32_t m = 0; m < problem.microBatches(); ++m)
      for (int32_t s = 0; s < stages; ++s)
        for (int32_t k = 1; k < kinds; ++k) {
          int64_t before = position[ids.at(k - 1, s, m)];
          int64_t after = position[ids.at(k, s, m)];
          if (before < 0 || after < 0 || before < after)
            continue;
          int32_t worker = problem.pipelines[pipelineOf[m]].workers[s];
          report(Constraint::Order,
                 "worker " + std::to_string(worker) + ": " +
                     describe(ids.action(ids.at(k, s, m), pipelineOf)) +
                     " stands before the " +
                     nameOf(ids.action(ids.at(k - 1, s, m), pipelineOf).kind) +
                     " it needs");
        }
  }

  void checkDeadlock() {
    Timing timing = simulate(problem, schedule);
    if (timing.complete)
      return;
    for (size_t w = 0; w < schedule.workers.size(); ++w)
      for (size_t i = 0; i < schedule.workers[w].size(); ++i)
        if (timing.starts[w][i] < 0) {
          report(Constraint::Deadlock, "worker " + std::to_string(w) +
                                           " never gets to " +
                                           describe(schedule.workers[w][i]));
          break;
        }
  }

  /// Slots ascend on each worker and a dependency never points to its own or a
  /// later slot.
  void checkSlots() {
    bool fits = schedule.slots.size() == schedule.workers.size();
    for (size_t w = 0; fits && w < schedule.workers.size(); ++w)
      fits = schedule.slots[w].size() == schedule.workers[w].size();
    if (!fits)
      return report(Constraint::Slots, "expected a slot for each action");
    std::vector<int64_t> slotOf(ids.count(), -1);
    for (size_t w = 0; w < schedule.workers.size(); ++w)
      for (size_t i = 0; i < schedule.workers[w].size(); ++i) {
        const Action &action = schedule.workers[w][i];
        slotOf[*ids.find(action)] = schedule.slots[w][i];
        if (schedule.slots[w][i] < 0 ||
            (i > 0 && schedule.slots[w][i] <= schedule.slots[w][i - 1]))
          report(Constraint::Slots, "worker " + std::to_string(w) +
                                        ": expected a slot after that of the "
                                        "action before, got slot " +
                                        std::to_string(schedule.slots[w][i]) +
                                        " for " + describe(action));
      }
    auto stages = static_cast<int32_t>(problem.stages.size());
    for (int32_t m = 0; m < problem.microBatches(); ++m)
      for (int32_t s = 0; s + 1 < stages; ++s) {
        checkSlotEdge(slotOf, ids.at(0, s, m), ids.at(0, s + 1, m));
        checkSlotEdge(slotOf, ids.at(1, s + 1, m), ids.at(1, s, m));
      }
  }

  void checkSlotEdge(const std::vector<int64_t> &slotOf, int64_t before,
                     int64_t after) {
    if (slotOf[before] >= slotOf[after])
      report(Constraint::Slots,
             describe(ids.action(after, pipelineOf)) + " in slot " +
                 std::to_string(slotOf[after]) + " needs " +
                 describe(ids.action(before, pipelineOf)) + " in slot " +
                 std::to_string(slotOf[before]));
  }

  const Problem &problem;
  const Schedule &schedule;
  ActionIds ids;
  std::vector<int32_t> pipelineOf;
  /// Index on its worker of each action, -1 where it stands nowhere.
  std::vector<int64_t> position;
  std::vector<Violation> violations;
};

} // namespace

std::vector<Violation> verify(const Problem &problem,
                              const Schedule &schedule) {
  return Verifier(problem, schedule).run();
}

} // namespace chimera::schedule
