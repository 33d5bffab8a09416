//===- Measured.h - A step that ran, from its trace -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_MEASURED_H
#define CHIMERA_COMPILER_SCHEDULE_MEASURED_H

#include "compiler/schedule/timeline/ClockedStep.h"

#include <string>
#include <string_view>
#include <variant>

namespace chimera::schedule {

/// A step that ran. Where a flush ends each step: the last step of a trace,
/// from its first action on. Where steps overlap: of each worker the last body
/// of a trace (SteadyStep.h), from when the worker was done with the body
/// before. The end of the run, which drains the pipeline, is no steady state
/// and left out.
struct Measured : ClockedStep {
  /// What a worker did beside actions, updates and waits for all-reduces: waits
  /// for messages, posts, loads.
  struct Other : Tail::Span {
    std::string name, category;
  };
  /// Of each worker, what began with the first action or later, or with its
  /// body.
  std::vector<std::vector<Other>> others;
  std::string pipeline; ///< its name, where the trace has it
  /// Its number, from 1, where the trace has it; of a body that of the first
  /// step whose micro-batches it has, and how many such steps there are.
  std::optional<int64_t> step;
  int32_t steps = 1;
  int32_t copy = 0, copies = 1;
  bool isSlowest = false; ///< of several copies, and not chosen by number
};

/// Reads what `chimera-run --trace` and renderChromeTrace write. A trace has a
/// process for each data-parallel copy; the result is the copy number `copy` of
/// them, from 0, or the one whose step took longest where that has no value.
/// Actions are found by their arguments, waits for all-reduces and updates by
/// their names.
///
/// Else the result says what is wrong: the text is no JSON or no trace, has
/// numbers that are missing or out of range, has more copies than the problem,
/// or other workers, stages, pipelines or micro-batches; an action is missing,
/// is there twice or on another worker; a worker ran its actions in another
/// order; or steps overlap and the trace has fewer than two bodies. Of such
/// steps `chimera-run --trace` writes as many bodies as it is asked for steps,
/// and the end of the run; so the trace has micro-batches of one step more.
///
/// Requires a valid schedule whose step ends with a flush or, where steps
/// overlap, that of a SteadyStep.
std::variant<Measured, std::string>
readMeasured(std::string_view text, const Problem &problem,
             const Schedule &schedule, std::optional<int64_t> copy = {});

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_MEASURED_H
