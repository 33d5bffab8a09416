//===- ActionRules.h - What an action waits for, and its times --*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_ACTIONRULES_H
#define CHIMERA_COMPILER_SCHEDULE_ACTIONRULES_H

#include "compiler/schedule/Schedule.h"

namespace chimera::schedule {

/// What actions have in common that differ in their micro-batch alone.
struct ActionRule {
  int64_t first = 0; ///< number of the one of micro-batch 0
  int64_t cost = 0;
  /// Numbers, less its own, of what it depends on on its own stage and on the
  /// one beside it; 0 for nothing.
  int64_t own = 0, other = 0;
  int64_t delay = 0;      ///< from the other's end until its message is there
  int64_t flight = 0;     ///< of that, what occupies nobody
  int64_t receive = 0;    ///< that the message occupies the worker before it
  int64_t send = 0;       ///< that its own message does behind it
  int32_t from = -1;      ///< the worker of the other
  int32_t to = -1;        ///< the worker that may wait for it
  bool isAwaited = false; ///< the message is received here
};

/// Works out once what an action waits for and what its messages take: a
/// simulation asks for it at every action. The verifier has a reading of the
/// dependencies of its own, on purpose.
class ActionRules {
public:
  /// Refers to `problem`.
  explicit ActionRules(const Problem &problem);

  const ActionRule &of(const Action &action) const {
    return rules[indexOf(action)];
  }
  int64_t idOf(const Action &action, const ActionRule &rule) const {
    return ids.later(rule.first, action.microBatch);
  }
  const ActionIds &numbering() const { return ids; }

private:
  static constexpr int32_t kKinds = 5;

  /// Where the rules of a pipeline are: a row for each stage, in it those of
  /// each kind, by how many micro-batches a forward covers and else by part.
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
  int32_t beside(const Action &action, int32_t step) const;
  std::array<int64_t, 3> times(const Action &action, int32_t step) const;
  void await(ActionRule &rule, const Action &action, int64_t here,
             int32_t step) const;
  void send(ActionRule &rule, const Action &action, int32_t step) const;

  const Problem &problem;
  ActionIds ids;
  std::vector<ActionRule> rules;
  std::vector<Table> tables; ///< of each pipeline
};

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_ACTIONRULES_H
