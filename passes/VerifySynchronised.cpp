//===- VerifySynchronised.cpp - Workers share nothing but channels --------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/Sharing.h"

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_VERIFYSYNCHRONISEDPASS
#include "passes/Passes.h.inc"

namespace {

struct VerifySynchronised : impl::VerifySynchronisedPassBase<VerifySynchronised> {
  void runOnOperation() override {
    for (auto pipeline : getOperation().getOps<PipelineOp>())
      if (failed(verifySharing(pipeline, /*isReduced=*/true)))
        signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace chimera
