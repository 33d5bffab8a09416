//===- Bridge.h - From the IR to the schedule library -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Converts IR to schedule::Problem and schedule::Schedule. Orders.h reads the
// orders that are given as text.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_DESCRIBE_BRIDGE_H
#define CHIMERA_PASSES_DESCRIBE_BRIDGE_H

#include "compiler/schedule/model/Problem.h"
#include "compiler/schedule/model/Schedule.h"
#include "compiler/schedule/verify/Verify.h"
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

/// Fails with a diagnostic if stages or directions are missing, if an index
/// occurs twice, or if stages and directions do not fit each other.
mlir::FailureOr<Layout> layoutOf(PipelineOp pipeline);

/// The layout without directions, for a pipeline whose directions may be
/// missing.
mlir::FailureOr<Layout> stagesOf(PipelineOp pipeline);

/// The position of a replica among all replicas. The arguments and the yielded
/// values of a section are in this order of replicas.
inline unsigned replicaIndex(const Layout &layout, uint32_t pipeline,
                             uint32_t stage) {
  return pipeline * layout.stages.size() + stage;
}

/// The parameters that the first and the last stage share, by their position in
/// each stage. None if the model is not tied or there is only one stage. Fails
/// with a diagnostic if the model does not exist, if the stages do not fit it,
/// or if the schedule has no flush: without a flush, the two stages would
/// update their copies of the parameters at different times.
mlir::FailureOr<std::optional<program::Tied>> tiedOf(PipelineOp pipeline,
                                                     const Layout &layout);

/// The pipeline's stages with their costs, its links and its all-reduce policy.
/// Memory caps are not set, so that a schedule that exceeds the caps can still
/// be ordered, shown and reported. Fails with a diagnostic if timeUnitOf or
/// tiedOf fails.
mlir::FailureOr<schedule::Workload> workloadOf(PipelineOp pipeline,
                                               const Layout &layout);

/// The pipeline's problem as its directions state it. The problem does not say
/// which backwards are split, because only the order says this. Fails with a
/// diagnostic if workloadOf fails or if the schedule library refuses the
/// problem.
mlir::FailureOr<schedule::Problem> problemOf(PipelineOp pipeline);

schedule::Action actionOf(ActionOp op);

/// The order of actions on every worker, from the sections of a scheduled
/// pipeline or from the workers of a projected one. The schedule has slots if
/// every action has a slot. If steps overlap, the schedule has two steps and
/// marks each worker's loop body. Fails with a diagnostic if an action names no
/// worker.
mlir::FailureOr<schedule::Schedule> scheduleOf(PipelineOp pipeline);

/// Reports up to twenty violations and the number of the others. `begin`
/// returns the diagnostic to which a violation's message is appended.
/// `locationOf` returns the location of an action, by its worker and its index
/// in the worker's order. Without `locationOf`, notes about actions are left
/// out. Fails if there are any violations.
mlir::LogicalResult
report(llvm::ArrayRef<schedule::Violation> violations,
       llvm::function_ref<mlir::InFlightDiagnostic(const schedule::Violation &)>
           begin,
       llvm::function_ref<mlir::Location(int32_t worker, int32_t index)>
           locationOf = nullptr);

/// Like the first `report`, with all diagnostics on `op`, after `prefix`.
mlir::LogicalResult report(mlir::Operation *op, const llvm::Twine &prefix,
                           llvm::ArrayRef<schedule::Violation> violations);

/// Reports each violation on the action that is wrong. If no single action is
/// wrong, reports it on the first section. Requires that the violations were
/// found in the same order that the actions of `sections` have.
mlir::LogicalResult
reportOnActions(llvm::ArrayRef<SectionOp> sections,
                llvm::ArrayRef<schedule::Violation> violations);

/// Fails if a step has more actions than can be compiled, or if a worker has
/// more losses than a program allows: all losses of a worker are operands of
/// one all-reduce.
mlir::LogicalResult verifySize(PipelineOp pipeline,
                               const schedule::Problem &problem);

/// The sections of a pipeline that is unrolled and not yet projected: the step,
/// or the prologue, step and epilogue. Fails with a diagnostic if there are
/// none.
mlir::FailureOr<llvm::SmallVector<SectionOp, 3>>
sectionsOf(PipelineOp pipeline);

/// Fails with a diagnostic unless each section has the loop-carried values of
/// all replicas of the layout as arguments, and yields the new values of all of
/// them.
mlir::LogicalResult verifyReplicas(llvm::ArrayRef<SectionOp> sections,
                                   const Layout &layout);

/// The worker of each loop-carried value. `types` are the types of the
/// arguments of a section, or of the values that it yields. Requires that
/// verifyReplicas succeeds.
llvm::SmallVector<uint32_t> ownerWorkers(mlir::TypeRange types,
                                         const Layout &layout);

/// The replicas on each worker, as a flat list of pairs (pipeline, stage).
std::vector<llvm::SmallVector<int32_t>> replicasByWorker(const Layout &layout);

/// True if the sections are a prologue, step and epilogue. False for a single
/// step.
inline bool stepsOverlap(llvm::ArrayRef<SectionOp> sections) {
  return sections.size() > 1;
}

} // namespace chimera

#endif // CHIMERA_PASSES_DESCRIBE_BRIDGE_H
