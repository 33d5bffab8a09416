//===- Best.h - The best settings of a scheme's options ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An option of a scheme may be left open (kBest): then each of its values is
// tried, for the costs, the messages, the all-reduces and the caps of the
// request.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_BEST_H
#define CHIMERA_COMPILER_SCHEDULE_BEST_H

#include "compiler/schedule/Registry.h"
#include "compiler/schedule/StepTime.h"

#include <functional>

namespace chimera::schedule {

/// Every setting of the options of `request` that its sizes allow, with all
/// values of those that are open: words in their order, integers up to the
/// number of workers.
std::vector<Options> settingsOf(const Scheme &scheme, const Request &request);

/// A plan of a scheme and what it takes.
struct Candidate {
  Plan plan;     ///< without recomputes
  StepTime time; ///< with them, in the request's ticks
  bool fits;     ///< into the memory caps, by the library's model
  /// Of the worker that holds most.
  int64_t peakBytes;
  int32_t peakActivations;
};

/// The plan of those settings in which a step takes least time, of those that
/// fit into the caps where any do; the first of equal ones. None where there is
/// no plan, or none that is `allowed`.
std::optional<Candidate>
bestOf(const Scheme &scheme, const Request &request,
       const std::function<bool(const Candidate &)> &allowed = {});

/// The request that `problem`, of a plan of a scheme, was made for, with all
/// options of the scheme open.
Request openRequest(const Scheme &scheme, const Problem &problem);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_BEST_H
