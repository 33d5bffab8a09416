//===- MakePlan.h - The plan of a scheme ------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes the plan of a scheme. Options of a scheme that have the value kBest are
// open. For them, all values are tried with the costs, messages, all-reduces
// and memory caps of the request.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_MAKEPLAN_H
#define CHIMERA_COMPILER_SCHEDULE_MAKEPLAN_H

#include "compiler/schedule/families/Registry.h"
#include "compiler/schedule/simulate/StepTime.h"

#include <functional>

namespace chimera::schedule {

/// Empty if the scheme has a plan for these sizes and options, otherwise a text
/// that says what is possible. If some options are open (Options::isOpen), the
/// result is empty if the scheme has a plan for at least one choice of their
/// values.
std::string planError(const Scheme &scheme, const Request &request);

/// The scheme's plan for `request`, without its order. Requires that planError
/// returns an empty string and that no option is open.
Plan placePlan(const Scheme &scheme, const Request &request);

/// The scheme's plan for `request`, or the reason why there is none. Open
/// options get their best values (bestOf).
PlanOrError makePlan(const Scheme &scheme, const Request &request);

/// All settings of the options of `request` that its sizes allow. An open
/// option has each of its values in turn: all words in order, or the integers
/// from 1 to the number of workers.
std::vector<Options> settingsOf(const Scheme &scheme, const Request &request);

/// A plan of a scheme with its step time and memory.
struct Candidate {
  Plan plan;     ///< without recomputes
  StepTime time; ///< with recomputes, in the request's ticks
  bool fits; ///< true if no worker exceeds its memory cap in the memory model
             ///< of Memory.h
  /// The largest values over all workers.
  int64_t peakBytes;
  int32_t peakActivations;
};

/// The plan with the shortest step among all settings for which `allowed`
/// returns true. A plan within the memory caps is preferred to any plan that
/// exceeds them. Among plans with equal step times, the first is chosen. The
/// result is none if no allowed setting has a plan.
std::optional<Candidate>
bestOf(const Scheme &scheme, const Request &request,
       const std::function<bool(const Candidate &)> &allowed = {});

/// The request from which `scheme` made a plan for `problem`, but with all of
/// the scheme's options open.
Request openRequest(const Scheme &scheme, const Problem &problem);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_MAKEPLAN_H
