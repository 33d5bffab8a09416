//===- ScheduledProblem.cpp - A problem and its order ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/ScheduledProblem.h"

#include "compiler/schedule/formats/OrderText.h"
#include "compiler/schedule/simulate/Memory.h"
#include "passes/describe/DescriptionReader.h"
#include "passes/describe/Orders.h"

using namespace mlir;

namespace chimera {

/// True if the pipeline has actions, and every action has a worker.
static bool isScheduled(PipelineOp pipeline) {
  Block &body = pipeline.getBody().front();
  if (!body.getOps<WorkerOp>().empty())
    return true;
  bool any = false;
  for (auto section : body.getOps<SectionOp>())
    for (auto action : section.getBody().getOps<ActionOp>()) {
      if (!action.getWorker())
        return false;
      any = true;
    }
  return any;
}

FailureOr<ScheduledProblem> scheduledProblemOf(PipelineOp pipeline) {
  FailureOr<schedule::Problem> problem = problemOf(pipeline);
  if (failed(problem))
    return failure();
  schedule::Schedule schedule;
  if (hasOrders(pipeline) && !isScheduled(pipeline)) {
    FailureOr<Orders> orders = readOrders(pipeline, *problem);
    if (failed(orders))
      return failure();
    schedule = std::move(orders->schedule);
  } else {
    FailureOr<schedule::Schedule> found = scheduleOf(pipeline);
    if (failed(found))
      return failure();
    schedule = std::move(*found);
  }
  problem->splits =
      schedule::splitsOf(schedule, static_cast<int32_t>(problem->stages.size()),
                         problem->microBatches());
  if (failed(verifySize(pipeline, *problem)))
    return failure();
  if (llvm::any_of(schedule.workers,
                   [](const std::vector<schedule::Action> &worker) {
                     return llvm::any_of(worker, [](const auto &action) {
                       return action.kind == schedule::Kind::Recompute;
                     });
                   }))
    problem->recompute = recomputeOf(pipeline);
  if (std::string error = schedule::check(*problem); !error.empty())
    return pipeline.emitOpError(error);
  return ScheduledProblem{std::move(*problem), std::move(schedule)};
}

LogicalResult checkCaps(PipelineOp pipeline, const ScheduledProblem &of) {
  schedule::Problem problem = of.problem;
  problem.memoryCaps = capsOf(pipeline);
  std::optional<schedule::CapExcess> excess =
      schedule::capExcess(problem, of.schedule);
  if (!excess)
    return success();
  return pipeline.emitOpError("expected workers of at most ")
         << problem.memoryCaps[excess->worker] << " bytes (memory_cap), got "
         << schedule::describe(*excess, problem, of.schedule);
}

LogicalResult verifySchedule(PipelineOp pipeline, const ScheduledProblem &of) {
  if (std::string error = schedule::check(of.problem); !error.empty())
    return pipeline.emitOpError(error);
  return report(pipeline, kInvalid, schedule::verify(of.problem, of.schedule));
}

} // namespace chimera
