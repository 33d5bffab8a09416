//===- WriteOrder.cpp - A scheduled pipeline as a description -------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/describe/Orders.h"
#include "passes/schedule/ScheduleAnalysis.h"

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_WRITEORDERPASS
#include "passes/Passes.h.inc"

namespace {

struct WriteOrder : impl::WriteOrderPassBase<WriteOrder> {
  void runOnOperation() override {
    for (auto pipeline : getOperation().getOps<PipelineOp>())
      if (failed(write(pipeline, getChildAnalysis<ScheduleAnalysis>(pipeline))))
        return signalPassFailure();
  }

  static LogicalResult write(PipelineOp pipeline, ScheduleAnalysis &analysis) {
    const ScheduledProblem *of = analysis.verified();
    if (!of)
      return failure();
    for (Operation &op : llvm::make_early_inc_range(pipeline.getBody().front()))
      if (!isa<StageOp, DirectionOp>(op))
        op.erase();
    pipeline.removeScheduleAttr();
    pipeline.removeScheduleOptionsAttr();
    pipeline.setSplitBackward(false);
    writeOrders(pipeline, of->problem, of->schedule);
    return success();
  }
};

} // namespace
} // namespace chimera
