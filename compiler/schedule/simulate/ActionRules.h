//===- ActionRules.h - Dependencies and times of actions --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SIMULATE_ACTIONRULES_H
#define CHIMERA_COMPILER_SCHEDULE_SIMULATE_ACTIONRULES_H

#include "compiler/schedule/model/Schedule.h"

namespace chimera::schedule {

/// The dependencies and times of an action. Actions that differ only in their
/// micro-batch share one rule. The "other action" is the action on the stage
/// before or after from which this action needs a value.
struct ActionRule {
  int64_t first = 0; ///< id of this action for micro-batch 0
  int64_t cost = 0;
  /// Ids of the dependency on the same stage and of the other action, relative
  /// to the id of this action; 0 if there is none.
  int64_t sameStage = 0, otherStage = 0;
  int64_t flight = 0;  ///< time of the message from the other action in flight
  int64_t receive = 0; ///< time of its worker's receive before the action
  int64_t send = 0;    ///< time of its worker's send after the action
  int32_t sender = -1; ///< worker of the other action
  /// The worker of the action that uses the message of this action.
  int32_t receiver = -1;
  /// True if the action sends, or receives, a message.
  bool sendsMessage = false, receivesMessage = false;
};

/// A message, seen from one of its two workers.
struct Message {
  int64_t id;    ///< of the action that produces it
  int32_t stage; ///< the lower of the two stages that it connects
  int32_t peer;  ///< the worker at the other end
};

/// A table of the rules of all actions of a problem. A simulation needs a rule
/// for every action that it runs, so rules are computed once. The verifier has
/// its own code for dependencies (verify/PlacedActions.h) on purpose: if one of
/// the two has an error, tests that use both fail.
class ActionRules {
public:
  /// Keeps a reference to `problem`.
  explicit ActionRules(const Problem &problem);

  const ActionRule &ruleOf(const Action &action) const {
    return rules[indexOf(action)];
  }
  int64_t idOf(const Action &action, const ActionRule &rule) const {
    return ids.atLaterMicroBatch(rule.first, action.microBatch);
  }
  const ActionIds &actionIds() const { return ids; }
  /// The message that `action` sends after its end, if any. A forward sends its
  /// activations to the worker of the next stage. A backward or input gradient
  /// sends its gradient to the worker of the stage before. Stages on the same
  /// worker exchange no messages.
  std::optional<Message> sentBy(const Action &action) const;
  /// The message that `action` receives before it starts, if any. If a stage
  /// has fused recomputes, the recompute receives the gradient; the backward
  /// does not.
  std::optional<Message> receivedBy(const Action &action) const;

private:
  static constexpr auto kKinds = static_cast<int32_t>(std::size(kActionKinds));

  /// The part of `rules` that belongs to a pipeline: one row for each stage.
  /// `at[kind]` is the position in a row of the first rule of that kind. The
  /// rules of forwards are sorted by the number of micro-batches that they
  /// cover, the others by part.
  struct Table {
    int64_t begin = 0, row = 0;
    int32_t at[kKinds] = {};
  };

  int64_t indexOf(const Action &action) const {
    const Table &table = tables[action.pipeline];
    return table.begin + action.stage * table.row +
           table.at[static_cast<size_t>(action.kind)] + action.microBatches -
           1 + action.part;
  }
  void add(Action action, int32_t most, int32_t parts);
  ActionRule make(const Action &action) const;
  int32_t workerAtOffset(const Action &action, int32_t step) const;
  std::array<int64_t, 3> times(const Action &action, int32_t step) const;
  void addDependency(ActionRule &rule, const Action &action, int64_t here,
                     int32_t step) const;
  void addSend(ActionRule &rule, const Action &action, int32_t step) const;

  const Problem &problem;
  ActionIds ids;
  std::vector<ActionRule> rules;
  std::vector<Table> tables; ///< of each pipeline
};

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SIMULATE_ACTIONRULES_H
