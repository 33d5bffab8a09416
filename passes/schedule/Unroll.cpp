//===- Unroll.cpp - One training step as a graph --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/Unroll.h"
#include "passes/Passes.h"
#include "passes/describe/DescriptionReader.h"
#include "passes/describe/Orders.h"
#include "passes/schedule/ScheduleAnalysis.h"
#include "passes/schedule/StepBuilder.h"
#include "runtime/program/Layers.h"

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_UNROLLPASS
#include "passes/Passes.h.inc"

namespace {

/// The bytes of tokens and of labels of a pipeline without a model. Its other
/// values have the same size.
constexpr int64_t kBareTokenBytes = 64;

LogicalResult unroll(PipelineOp pipeline, ScheduleAnalysis &analysis) {
  FailureOr<Layout> layout = layoutOf(pipeline);
  if (failed(layout) || failed(requirePartitioned(pipeline)))
    return failure();
  const ScheduledProblem *of = analysis.get();
  if (!of)
    return failure();
  FailureOr<std::unique_ptr<program::PackageT>> model = modelOf(pipeline);
  if (failed(model))
    return failure();
  auto samples = static_cast<uint32_t>(pipeline.getMicroBatchSize());
  int64_t tokenBytes = kBareTokenBytes, labelBytes = kBareTokenBytes;
  if (*model) {
    tokenBytes = program::inputBytes(**model, samples);
    labelBytes = program::labelBytes(**model, samples);
  }
  FailureOr<std::optional<program::Tied>> tied = tiedOf(pipeline, *layout);
  if (failed(tied))
    return failure();
  StepBuilder build(pipeline, *layout, of->problem, tokenBytes, labelBytes);
  if (!schedule::stepsOverlap(of->problem.updates))
    unrollStep(build, *layout, of->problem, *tied);
  else
    unrollSections(build, of->problem);
  return success();
}

struct Unroll : impl::UnrollPassBase<Unroll> {
  void runOnOperation() override {
    for (auto pipeline : getOperation().getOps<PipelineOp>())
      if (failed(
              unroll(pipeline, getChildAnalysis<ScheduleAnalysis>(pipeline))))
        return signalPassFailure();
    markAnalysesPreserved<ScheduleAnalysis>();
  }
};

} // namespace
} // namespace chimera
