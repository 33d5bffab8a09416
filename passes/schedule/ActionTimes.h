//===- ActionTimes.h - The times of a step's actions ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_SCHEDULE_ACTIONTIMES_H
#define CHIMERA_PASSES_SCHEDULE_ACTIONTIMES_H

#include "passes/schedule/ScheduleAnalysis.h"

#include "llvm/ADT/DenseMap.h"

namespace chimera {

/// The start and end of each action of a scheduled pipeline. They come from a
/// simulation with the pipeline's own costs and links.
class ActionTimes {
public:
  /// The times of the actions of `pipeline`. Fails with a diagnostic if the
  /// schedule is invalid.
  static mlir::FailureOr<ActionTimes> of(PipelineOp pipeline,
                                         ScheduleAnalysis &analysis);

  int64_t startOf(ActionOp action) const { return times.at(action).first; }
  int64_t endOf(ActionOp action) const { return times.at(action).second; }

  /// The op before which to insert an op that happens at `time` in the global
  /// order. The search begins after `op` and ends at `last`. The insertion
  /// point is after all actions that start before `time`, and after the posts
  /// of these actions. It is before the first action that starts at `time` or
  /// later, and before the waits and loads of this action.
  mlir::Operation *insertionPointAt(mlir::Operation *op, int64_t time,
                                    mlir::Operation *last) const;

private:
  llvm::DenseMap<mlir::Operation *, std::pair<int64_t, int64_t>> times;
};

} // namespace chimera

#endif // CHIMERA_PASSES_SCHEDULE_ACTIONTIMES_H
