//===- VerifySynchronised.cpp - Workers share nothing but channels --------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/verify/Verifier.h"

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_VERIFYSYNCHRONISEDPASS
#include "passes/Passes.h.inc"

namespace {

LogicalResult verifySynchronised(PipelineOp pipeline) {
  return verifySharing(pipeline, /*isSplit=*/true);
}

struct VerifySynchronised
    : Verifier<impl::VerifySynchronisedPassBase<VerifySynchronised>,
               verifySynchronised> {};

} // namespace
} // namespace chimera
