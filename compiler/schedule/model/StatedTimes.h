//===- StatedTimes.h - Times that a user states -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_MODEL_STATEDTIMES_H
#define CHIMERA_COMPILER_SCHEDULE_MODEL_STATEDTIMES_H

#include "compiler/schedule/model/Problem.h"

#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace chimera::schedule {

/// A time of a link that a user can state.
struct MessageOption {
  const char *name;
  const char *summary;
  MessageTime &(*message)(Link &link);
  int64_t MessageTime::*time;
};

std::span<const MessageOption> messageOptions();
/// Null if no option has this name.
const MessageOption *findMessageOption(std::string_view name);

/// Times that a user states once for all stages and all links of a problem, in
/// ticks. A time that is not stated is 0.
struct StatedTimes {
  /// Says to what the times of actions belong. Stage: to each stage. Worker: to
  /// all stages of a worker in one pipeline together. OwnCosts: no times of
  /// actions are stated, because each stage has its own.
  enum class Scope : uint8_t { Stage, Worker, OwnCosts };

  Scope scope = Scope::Worker;
  /// The number of ticks in a unit of time, at least 1.
  int64_t perUnit = 1;
  /// The times of actions. 0 for `backward` is twice `forward`. 0 for
  /// `weightGradient` is half of a backward.
  int64_t forward = 0, backward = 0, weightGradient = 0, update = 0;
  std::vector<std::pair<const MessageOption *, int64_t>> messages = {};

  /// Whether each stage has its own costs.
  bool areOwn() const { return scope == Scope::OwnCosts; }
  /// Whether no times of actions are known: each action takes one tick.
  bool areDefault() const { return !areOwn() && forward == 0; }
  /// The time of a backward, in ticks.
  int64_t wholeBackward() const;

  /// Sets the times of `problem`. Returns the number of its ticks in a unit.
  ///
  /// - Actions take the stated times or, with OwnCosts, their stages' own
  ///   times.
  /// - Messages take the stated times. If there are none, messages keep their
  ///   times with OwnCosts. Otherwise messages take no time.
  ///
  /// With OwnCosts, the times of `problem` are in ticks of which a unit has
  /// `ownTicks`. A time that is too large becomes INT64_MAX, which `check`
  /// refuses. Requires that perUnit · ownTicks is below 2^63.
  int64_t apply(Problem &problem, int64_t ownTicks = 1) const;

private:
  /// The time of one stage if `time` (in ticks) is stated. The result is in
  /// smaller ticks: `factor` of them are one tick.
  int64_t timeOfStage(const Problem &problem, int64_t time,
                      int64_t factor) const;
  /// The number of smaller ticks into which each tick is divided, so that the
  /// times of stages and of parts of actions are whole numbers. It is 1 with
  /// OwnCosts. It is also 1 if each stage has the stated times and all of these
  /// are whole.
  int64_t refinement(const Problem &problem) const;
  void setStages(Problem &problem, int64_t factor) const;
  /// Converts the times of `links` from ticks of which a unit has `ownTicks` to
  /// ticks of which a unit has `factor` · `perUnit` · `ownTicks`. Then replaces
  /// the times that are stated.
  void setLinks(LinkClass &links, int64_t factor, int64_t ownTicks) const;
};

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_MODEL_STATEDTIMES_H
