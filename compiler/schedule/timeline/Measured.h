//===- Measured.h - A measured step, read from its trace --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_MEASURED_H
#define CHIMERA_COMPILER_SCHEDULE_MEASURED_H

#include "compiler/schedule/timeline/NanosecondStep.h"

#include <string>
#include <string_view>
#include <variant>

namespace chimera::schedule {

/// A measured step. If every step ends with a flush, it is the last step of a
/// trace, from its first action on. If steps overlap, it is the last body of
/// each worker (SteadyStep.h), from the end of the worker's previous body. The
/// actions after the last body are left out: they drain the pipeline, which is
/// not the steady state.
struct MeasuredStep : NanosecondStep {
  /// An activity of a worker other than actions, updates and waits for
  /// all-reduces: for example a wait for a message, a post or a load.
  struct Other : Span {
    std::string name, category;
  };
  /// By worker, the other activities that began at time 0 or later, and after
  /// the worker's previous step.
  std::vector<std::vector<Other>> others;
  std::string pipeline; ///< name of the pipeline, if the trace has it
  /// The number of the step, from 1, if the trace has it. If steps overlap, a
  /// body has micro-batches of several steps, and `step` is the number of the
  /// first of them.
  std::optional<int64_t> step;
  int32_t steps = 1;
  int32_t copy = 0, copies = 1;
  /// True if the caller named no copy, and this is the slowest of several
  /// copies.
  bool isSlowest = false;
  /// True if the trace says that ranks had more threads than cores.
  bool sharedCores = false;
};

/// Reads a step from a trace that `chimera-run --trace` or renderChromeTrace
/// wrote. A trace has a process for each data-parallel copy. The result is the
/// step of copy number `copy` (from 0) or, if no copy is given, of the copy
/// whose step took longest. Actions are identified by the arguments of their
/// events. Waits for all-reduces and updates are identified by the names of
/// their events.
///
/// Returns an error if
/// - the text is not JSON or not a trace,
/// - a number is missing or out of range,
/// - the trace has more copies than the problem, or other workers, stages,
///   pipelines or micro-batches,
/// - an action is missing, occurs twice or is on another worker,
/// - a worker ran its actions in another order, or
/// - steps overlap and the trace has fewer than two bodies.
///
/// If steps overlap, a trace of n steps from `chimera-run --trace` has n
/// bodies, and the end of the run, which drains the pipeline. So the trace has
/// micro-batches of n + 1 steps.
///
/// Requires a valid schedule of a step that ends with a flush or, if steps
/// overlap, the schedule of a SteadyStep.
std::variant<MeasuredStep, std::string>
readMeasured(std::string_view text, const Problem &problem,
             const Schedule &schedule, std::optional<int64_t> copy = {});

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_MEASURED_H
