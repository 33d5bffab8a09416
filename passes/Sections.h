//===- Sections.h - Prologue, step and epilogue -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What holds of the sections of steps that overlap, from unroll to allocate:
// each stage is `forwardsAhead` forwards ahead of its backwards, so a section
// hands on as many micro-batches in flight, and the versions of weights that
// their backwards will read.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_SECTIONS_H
#define CHIMERA_PASSES_SECTIONS_H

#include "passes/Bridge.h"

namespace chimera {

/// How many forwards a stage is ahead of its backwards where steps overlap.
inline int32_t forwardsAhead(const schedule::Problem &problem, int32_t stage) {
  return static_cast<int32_t>(problem.stages.size()) - 1 - stage;
}

/// Which of the versions that a section takes, oldest first, and then of those
/// that it makes, the actions of `stage` on micro-batch `microBatch` of the
/// section read.
int32_t versionInSection(const schedule::Problem &problem, int32_t stage,
                         int32_t microBatch);

/// Looks at the prologue, step and epilogue of an unrolled pipeline, or at
/// those of each worker. Does nothing for a schedule with a flush. Fails, and
/// reports all, where
/// - a section hands on anything but the versions that are kept, the optimizer
///   state and what is in flight, oldest first;
/// - an action reads another version of weights than the schedule states (so a
///   backward reads what its forward and its recompute read), another stash
///   than its forward or recompute left, or another activation than that of
///   its micro-batch;
/// - updates are not those of the section in their order, each of the newest
///   weights with the gradient that its label names.
/// Which actions there are is the schedule library's to check.
mlir::LogicalResult verifySections(PipelineOp pipeline);

/// The same of a problem that is at hand.
mlir::LogicalResult verifySections(PipelineOp pipeline,
                                   const schedule::Problem &problem);

} // namespace chimera

#endif // CHIMERA_PASSES_SECTIONS_H
