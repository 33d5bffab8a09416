//===- Sections.h - Prologue, step and epilogue -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks of the sections (prologue, step, epilogue) of steps that overlap. The
// checks are valid from unroll to allocate. Each stage runs `forwardsAhead`
// forwards ahead of its backwards. So a section yields the values of that many
// micro-batches in flight, and the versions of weights that their backwards
// will read.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_SCHEDULE_SECTIONS_H
#define CHIMERA_PASSES_SCHEDULE_SECTIONS_H

#include "passes/describe/Bridge.h"

namespace chimera {

/// If steps overlap, the number of forwards by which a stage is ahead of its
/// backwards.
inline int32_t forwardsAhead(const schedule::Problem &problem, int32_t stage) {
  return static_cast<int32_t>(problem.stages.size()) - 1 - stage;
}

/// The version of the weights that the actions of `stage` on micro-batch
/// `microBatch` of a section read. The result is an index into a list: first
/// the versions that are arguments of the section, oldest first, then the
/// versions that its updates make.
int32_t versionInSection(const schedule::Problem &problem, int32_t stage,
                         int32_t microBatch);

/// Checks the prologue, step and epilogue of an unrolled pipeline, or those of
/// each worker. Does nothing for a schedule with a flush. Fails, and reports
/// every violation, if
/// - the arguments of a section, or the values that it yields, are anything but
///   the versions that must be kept, the optimizer state, and the values of
///   micro-batches in flight, oldest first;
/// - an action reads another version of weights than the schedule states (so a
///   backward reads the version of its forward and of its recompute), another
///   stash than its forward or recompute made, or an activation of another
///   micro-batch;
/// - an update is missing, is not in order, does not update the newest weights,
///   or does not use the gradient that its label names.
///
/// Does not check which actions exist: the schedule library does.
mlir::LogicalResult verifySections(PipelineOp pipeline);

/// Like the first `verifySections`, for a caller that already has the problem.
mlir::LogicalResult verifySections(PipelineOp pipeline,
                                   const schedule::Problem &problem);

} // namespace chimera

#endif // CHIMERA_PASSES_SCHEDULE_SECTIONS_H
