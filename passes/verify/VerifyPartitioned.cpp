//===- VerifyPartitioned.cpp - A pipeline has its stages and its plan -----===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/describe/Bridge.h"
#include "passes/describe/Orders.h"
#include "passes/schedule/ScheduledProblem.h"
#include "passes/verify/Verifier.h"

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_VERIFYPARTITIONEDPASS
#include "passes/Passes.h.inc"

namespace {

LogicalResult verifyPartitioned(PipelineOp pipeline) {
  if (failed(layoutOf(pipeline)) || failed(requirePartitioned(pipeline)))
    return failure();
  return LogicalResult(scheduledProblemOf(pipeline));
}

struct VerifyPartitioned
    : Verifier<impl::VerifyPartitionedPassBase<VerifyPartitioned>,
               verifyPartitioned> {};

} // namespace
} // namespace chimera
