//===- VerifyCommunicated.cpp - Workers share channels and all-reduces ----===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/verify/Verifier.h"

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_VERIFYCOMMUNICATEDPASS
#include "passes/Passes.h.inc"

namespace {

LogicalResult verifyCommunicated(PipelineOp pipeline) {
  return verifySharing(pipeline, /*isSplit=*/false);
}

struct VerifyCommunicated
    : Verifier<impl::VerifyCommunicatedPassBase<VerifyCommunicated>,
               verifyCommunicated> {};

} // namespace
} // namespace chimera
