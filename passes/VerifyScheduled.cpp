//===- VerifyScheduled.cpp - A step is a valid schedule -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Orders.h"
#include "passes/Passes.h"
#include "passes/StepGraph.h"
#include "passes/Verifier.h"

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_VERIFYSCHEDULEDPASS
#include "passes/Passes.h.inc"

namespace {

LogicalResult verify(PipelineOp pipeline) {
  FailureOr<ScheduledProblem> of = scheduledProblemOf(pipeline);
  if (failed(of))
    return failure();
  FailureOr<SmallVector<SectionOp, 3>> sections = sectionsOf(pipeline);
  if (failed(sections) || failed(refuseOrders(pipeline)))
    return failure();
  LogicalResult graph = verifyStepGraph(pipeline, of->problem, *sections);
  LogicalResult order =
      reportOnActions(*sections, schedule::verify(of->problem, of->schedule));
  return success(succeeded(graph) && succeeded(order));
}

struct VerifyScheduled
    : Verifier<impl::VerifyScheduledPassBase<VerifyScheduled>, verify> {};

} // namespace
} // namespace chimera
