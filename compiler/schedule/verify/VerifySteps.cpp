//===- VerifySteps.cpp - The constraints of steps that overlap ------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/model/Steps.h"
#include "compiler/schedule/verify/PlacedActions.h"

namespace chimera::schedule {

namespace {

struct StepsVerifier : PlacedActions {
  explicit StepsVerifier(PlacedActions &&actions)
      : PlacedActions(std::move(actions)) {}

  /// Checks that the body can be repeated. For each action, the body must run
  /// either this action or the same action one step later, but not both. Then
  /// any number of bodies runs every action once. The sections are prologue,
  /// body and epilogue. No action may depend on an action of a later section.
  /// Then workers in different sections cannot wait for each other in a cycle.
  void checkPeriod() {
    if (problem.steps != 2) {
      if (!schedule.bodies.empty())
        report(Constraint::Period,
               "expected no bodies in an order of " +
                   std::to_string(problem.steps) +
                   " steps: only an order of two steps has them");
      return;
    }
    bool fits = schedule.bodies.size() == schedule.workers.size();
    for (size_t w = 0; fits && w < schedule.workers.size(); ++w) {
      auto [begin, end] = schedule.bodies[w];
      fits = begin >= 0 && begin <= end &&
             end <= static_cast<int64_t>(schedule.workers[w].size());
    }
    if (!fits)
      return report(Constraint::Period,
                    "expected a body in the order of each worker");
    const size_t before = violations.size();
    enum Section : uint8_t { kPrologue, kBody, kEpilogue };
    std::vector<Section> sections(idAt.size(), kPrologue); // of each position
    for (size_t w = 0; w < schedule.workers.size(); ++w) {
      auto begin = sections.begin() + first[w];
      std::fill(begin + schedule.bodies[w].begin,
                begin + schedule.bodies[w].end, kBody);
      std::fill(begin + schedule.bodies[w].end, sections.begin() + first[w + 1],
                kEpilogue);
    }
    forEachKnown([&](size_t, const Action &action, int64_t id) {
      Action later = action;
      later.microBatch += problem.microBatches();
      std::optional<int64_t> next = ids.find(later);
      // A missing action is reported by another constraint.
      if (!next || positionOf[*next] == kNowhere)
        return;
      Section here = sections[positionOf[id]];
      Section there = sections[positionOf[*next]];
      if ((here == kBody) == (there == kBody))
        report(Constraint::Period, positionOf[id],
               "expected the body to run " + describe(action) +
                   ", either of the first or of the second step, got " +
                   (here == kBody ? "both" : "neither"));
      else if (here == kEpilogue || there == kPrologue)
        report(Constraint::Period, positionOf[id],
               "expected " + describe(action) +
                   " of the first step in an earlier section than that of the "
                   "second step, got it in a later one");
    });
    forEachKnown([&](size_t w, const Action &action, int64_t id) {
      forEachDependency(action, id, [&](int64_t dependency) {
        if (positionOf[dependency] != kNowhere &&
            sections[positionOf[dependency]] > sections[positionOf[id]])
          report(Constraint::Period, positionOf[id],
                 onWorker(w) + describe(action) + " depends on " +
                     describeId(dependency) + ", which is in a later section");
        return true;
      });
    });
    // Other code assumes the next rule for the number of weight versions and
    // for loop-carried values: the prologue has exactly the first S-1-s
    // forwards of stage s.
    if (violations.size() > before)
      return;
    forEachKnown([&](size_t w, const Action &action, int64_t id) {
      bool isFirst = sections[positionOf[id]] == kPrologue;
      int32_t ahead = stages - 1 - action.stage;
      if (isFirst && action.kind != Kind::Forward)
        report(Constraint::Period, positionOf[id],
               onWorker(w) + "expected only forwards before the body, got " +
                   describe(action));
      else if (action.kind == Kind::Forward &&
               isFirst != (action.microBatch < ahead))
        report(Constraint::Period, positionOf[id],
               onWorker(w) + "expected exactly " + std::to_string(ahead) +
                   (ahead == 1 ? " forward" : " forwards") + " of stage " +
                   std::to_string(action.stage) +
                   " before the body, one for each later stage, got " +
                   describe(action) + (isFirst ? " before it" : " after it"));
    });
  }

  /// Counts the updates of each stage along its worker's order. An update is
  /// made after the gradients of each micro-batch or of each step are complete,
  /// depending on Problem::updates.
  void checkVersions() {
    struct Replica {
      int64_t updates = 0;
      std::vector<bool> done = {}; ///< by micro-batch: its gradient is complete
      int64_t inOrder = 0; ///< all micro-batches below this number are done
    };
    int64_t each =
        problem.updates == Updates::EachStep ? problem.microBatches() : 1;
    for (size_t w = 0; w < schedule.workers.size(); ++w) {
      std::vector<Replica> replicas(stages);
      for (size_t i = 0; i < schedule.workers[w].size(); ++i) {
        int64_t position = first[w] + static_cast<int64_t>(i);
        if (idAt[position] == kNoAction)
          continue;
        const Action &action = schedule.workers[w][i];
        Replica &replica = replicas[action.stage];
        if (action.kind == Kind::Forward)
          checkVersion(w, position, action, replica.updates);
        if (!addsToGradient(action.kind))
          continue;
        replica.done.resize(static_cast<size_t>(problem.microBatches()) *
                            problem.steps);
        if (each == 1 && action.microBatch != replica.inOrder)
          report(Constraint::Versions, position,
                 onWorker(w) + "expected the update of micro-batch " +
                     std::to_string(replica.inOrder) + " on stage " +
                     std::to_string(action.stage) + " next, got that of " +
                     std::to_string(action.microBatch));
        replica.done[action.microBatch] = true;
        while (replica.inOrder < std::ssize(replica.done) &&
               replica.done[replica.inOrder])
          ++replica.inOrder;
        replica.updates =
            each == 1 ? replica.updates + 1 : replica.inOrder / each;
        int64_t oldest = weightVersion(problem, action.stage, replica.inOrder);
        int64_t most = weightVersions(problem, action.stage);
        if (replica.updates - oldest + 1 > most)
          report(Constraint::Versions, position,
                 onWorker(w) + "expected at most " + std::to_string(most) +
                     " versions of stage " + std::to_string(action.stage) +
                     ", got " + std::to_string(replica.updates - oldest + 1) +
                     " after " + describe(action));
      }
    }
  }

  void checkVersion(size_t worker, int64_t position, const Action &forward,
                    int64_t updates) {
    int64_t version = weightVersion(problem, forward.stage, forward.microBatch);
    if (updates < version)
      report(Constraint::Versions, position,
             onWorker(worker) + describe(forward) +
                 " reads the weights after " + std::to_string(version) +
                 " updates, but only " + std::to_string(updates) +
                 " come before it");
  }
};

} // namespace

std::vector<Violation> verifySteps(PlacedActions &&actions) {
  StepsVerifier verifier(std::move(actions));
  verifier.checkPeriod();
  verifier.checkVersions();
  return std::move(verifier.violations);
}

} // namespace chimera::schedule
