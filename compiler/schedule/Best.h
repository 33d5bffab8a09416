//===- Best.h - The best values of a scheme's options -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The search for the best values of open options: options of a scheme that have
// the value kBest. The search tries all values of these options with the costs,
// messages, all-reduces and memory caps of the request.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_BEST_H
#define CHIMERA_COMPILER_SCHEDULE_BEST_H

#include "compiler/schedule/Registry.h"
#include "compiler/schedule/StepTime.h"

#include <functional>

namespace chimera::schedule {

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

#endif // CHIMERA_COMPILER_SCHEDULE_BEST_H
