//===- Orders.cpp - Orders that are given as text -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/describe/Orders.h"

#include "compiler/schedule/formats/OrderText.h"
#include "passes/describe/Bridge.h"
#include "runtime/program/Printable.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace chimera {

bool hasOrders(PipelineOp pipeline) {
  return !pipeline.getBody().empty() &&
         !pipeline.getBody().front().getOps<OrderOp>().empty();
}

LogicalResult requireOrders(PipelineOp pipeline) {
  if (hasOrders(pipeline))
    return success();
  return pipeline.emitOpError("expected a chimera.order for each worker: run "
                              "chimera-partition first");
}

LogicalResult requirePartitioned(PipelineOp pipeline) {
  if (!pipeline.getBody().empty())
    for (Operation &op : pipeline.getBody().front())
      if (isa<SectionOp, WorkerOp>(op))
        return op.emitOpError("expected a partitioned pipeline, which has "
                              "stages, directions and orders only");
  return requireOrders(pipeline);
}

static InFlightDiagnostic errorAt(OrderOp line, size_t at) {
  return emitError(line.locationOf(at))
         << "'" << OrderOp::getOperationName() << "' op ";
}

FailureOr<Orders> readOrders(PipelineOp pipeline,
                             const schedule::Problem &problem) {
  Orders orders;
  auto workers = static_cast<size_t>(problem.workers);
  orders.lines.resize(workers);
  for (auto line : pipeline.getBody().front().getOps<OrderOp>()) {
    if (line.getWorker() >= workers)
      return line.emitOpError("expected a worker below ")
             << workers << ", got " << line.getWorker();
    OrderOp &other = orders.lines[line.getWorker()];
    if (other) {
      InFlightDiagnostic error = line.emitOpError("expected one order for "
                                                  "worker ")
                                 << line.getWorker();
      error.attachNote(other.getLoc()) << "here is another";
      return error;
    }
    other = line;
  }
  schedule::OrderText text(problem.workers, problem.pipelines, problem.updates);
  std::vector<std::vector<int64_t>> slots;
  bool saySlots = false;
  for (auto [worker, op] : llvm::enumerate(orders.lines)) {
    if (!op)
      return pipeline.emitOpError("expected a chimera.order for each of ")
             << workers << " workers, got none for worker " << worker
             << (pipeline.getWorkers() ? ""
                                       : ": without workers(NUMBER) each stage "
                                         "has a worker of its own");
    schedule::OrderLine line;
    if (std::optional<schedule::TextError> error =
            text.read(static_cast<int32_t>(worker),
                      std::string_view(op.getActions()), line))
      return errorAt(op, error->offset) << program::printable(error->message);
    orders.schedule.workers.push_back(std::move(line.actions));
    orders.wordStarts.push_back(std::move(line.wordStarts));
    slots.push_back(std::move(line.slots));
    saySlots |= line.hasSlots;
    if (line.body)
      orders.schedule.bodies.push_back(*line.body);
  }
  if (saySlots)
    orders.schedule.slots = std::move(slots);
  return orders;
}

LogicalResult report(const Orders &orders,
                     ArrayRef<schedule::Violation> violations) {
  auto begin = [&](const schedule::Violation &violation) {
    OrderOp line = orders.lines[std::max(violation.worker, 0)];
    if (violation.index < 0)
      return line.emitOpError();
    return errorAt(line, orders.wordStarts[violation.worker][violation.index]);
  };
  return report(violations, begin, [&](int32_t worker, int32_t index) {
    OrderOp line = orders.lines[worker];
    return line.locationOf(orders.wordStarts[worker][index]);
  });
}

void writeOrders(PipelineOp pipeline, const schedule::Problem &problem,
                 const schedule::Schedule &schedule) {
  OpBuilder builder = OpBuilder::atBlockEnd(&pipeline.getBody().front());
  schedule::OrderText text(problem.workers, problem.pipelines, problem.updates);
  Location loc =
      NameLoc::get(builder.getStringAttr("order"), pipeline.getLoc());
  for (int32_t worker = 0; worker < problem.workers; ++worker)
    builder.create<OrderOp>(loc, worker, text.write(schedule, worker));
}

LogicalResult refuseOrders(PipelineOp pipeline) {
  for (auto line : pipeline.getBody().front().getOps<OrderOp>())
    return line.emitOpError(
        "expected no chimera.order beside a scheduled step: "
        "if the chimera.order has recomputes, run "
        "chimera-recompute, else delete it");
  return success();
}

void eraseOrders(PipelineOp pipeline) {
  for (auto line :
       llvm::make_early_inc_range(pipeline.getBody().front().getOps<OrderOp>()))
    line.erase();
}

} // namespace chimera
