//===- Bridge.h - Between the IR and the schedule library -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where IR becomes a schedule::Problem and a schedule::Schedule. An order that
// is given as text is read in Orders.h.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_BRIDGE_H
#define CHIMERA_PASSES_BRIDGE_H

#include "compiler/schedule/Problem.h"
#include "compiler/schedule/Schedule.h"
#include "compiler/schedule/Verify.h"
#include "dialect/Chimera.h"
#include "runtime/program/Program.h"

#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace chimera {

/// The stages and directions of a partitioned pipeline, by index.
struct Layout {
  llvm::SmallVector<StageOp> stages;
  llvm::SmallVector<DirectionOp> directions;

  size_t workers = 0;

  int32_t workerOf(uint32_t pipeline, uint32_t stage) const {
    DirectionOp direction = directions[pipeline];
    return direction.getPlacement()[stage];
  }
};

/// Fails, with a diagnostic, where stages or directions are missing, stand
/// twice or do not fit each other.
mlir::FailureOr<Layout> layoutOf(PipelineOp pipeline);

/// The same with the stages alone.
mlir::FailureOr<Layout> stagesOf(PipelineOp pipeline);

/// Where what is handed on for a replica stands among that of all replicas.
inline unsigned replicaIndex(const Layout &layout, uint32_t pipeline,
                             uint32_t stage) {
  return pipeline * layout.stages.size() + stage;
}

/// Where first and last stage hold the parameters that both have, none where
/// the model is not tied or there is one stage. Fails, with a diagnostic, where
/// there is no such model, the stages do not fit it, or the schedule has no
/// flush: then both would update their copies at different times.
mlir::FailureOr<std::optional<program::Tied>> tiedOf(PipelineOp pipeline,
                                                     const Layout &layout);

/// What the pipeline's stages are to run, with their costs and its link. Caps
/// of memory are no part of it: what exceeds them can still be ordered, shown
/// and reported. Fails, with a diagnostic, where timeUnitOf or tiedOf does.
mlir::FailureOr<schedule::Workload> workloadOf(PipelineOp pipeline,
                                               const Layout &layout);

/// The pipeline's problem as its directions state it; which backwards are split
/// its order says. Fails, with a diagnostic, where workloadOf does or the
/// schedule library refuses it.
mlir::FailureOr<schedule::Problem> problemOf(PipelineOp pipeline);

schedule::Action actionOf(ActionOp op);

/// The order of actions on every worker, from the sections of a scheduled
/// pipeline or from the workers of a projected one. Slots are taken along where
/// every action has one. Where steps overlap, the schedule is that of two steps
/// and their bodies. Fails, with a diagnostic, where an action names no worker.
mlir::FailureOr<schedule::Schedule> scheduleOf(PipelineOp pipeline);

/// What a pipeline is to do, and its order: that of its actions, or, where
/// these have no worker yet, of its chimera.order ops. Recomputation is part of
/// the problem only where the order has a recompute.
struct ScheduledProblem {
  schedule::Problem problem;
  schedule::Schedule schedule;
};

/// Fails, with a diagnostic, where problemOf, readOrders or scheduleOf does or
/// the schedule library refuses the problem.
mlir::FailureOr<ScheduledProblem> scheduledProblemOf(PipelineOp pipeline);

/// Reports the violations, up to twenty and how many more, each in the error
/// that `begin` begins for it. Fails if there are any.
mlir::LogicalResult
report(llvm::ArrayRef<schedule::Violation> violations,
       llvm::function_ref<mlir::InFlightDiagnostic(const schedule::Violation &)>
           begin);

/// The same, all on `op`.
mlir::LogicalResult report(mlir::Operation *op, const llvm::Twine &prefix,
                           llvm::ArrayRef<schedule::Violation> violations);

/// The same on the actions that are wrong. The violations are those of the
/// order in which the actions of `sections` stand; what is wrong with no one
/// action is reported on the first section.
mlir::LogicalResult
reportOnActions(llvm::ArrayRef<SectionOp> sections,
                llvm::ArrayRef<schedule::Violation> violations);

/// Fails, with one diagnostic, where workers hold more than the pipeline's caps
/// already by the schedule library's model, which is less than what their
/// programs hold. Requires a valid schedule.
mlir::LogicalResult checkCaps(PipelineOp pipeline, const ScheduledProblem &of);

/// How an error about an order that is not valid begins.
inline constexpr char kInvalid[] = "expected a valid schedule: ";

/// Fails, with a diagnostic, where the times are too large to add up or the
/// order is not valid.
mlir::LogicalResult verifySchedule(PipelineOp pipeline,
                                   const ScheduledProblem &of);

/// The step of an unrolled (not yet projected) pipeline, or its prologue, step
/// and epilogue. Fails, with a diagnostic, where there is none.
mlir::FailureOr<llvm::SmallVector<SectionOp, 3>>
sectionsOf(PipelineOp pipeline);

/// Fails, with a diagnostic, where a section does not take and yield what is
/// handed on for each replica of the layout.
mlir::LogicalResult verifyReplicas(llvm::ArrayRef<SectionOp> sections,
                                   const Layout &layout);

/// The worker that has each of the values that a section takes or yields.
/// Requires that verifyReplicas holds.
llvm::SmallVector<uint32_t> homesOf(mlir::TypeRange types,
                                    const Layout &layout);

/// The replicas that each worker holds: pipeline and stage, pair by pair.
std::vector<llvm::SmallVector<int32_t>> replicasByWorker(const Layout &layout);

/// True for a prologue, step and epilogue, false for a step alone.
inline bool stepsOverlap(llvm::ArrayRef<SectionOp> sections) {
  return sections.size() > 1;
}

} // namespace chimera

#endif // CHIMERA_PASSES_BRIDGE_H
