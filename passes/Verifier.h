//===- Verifier.h - A pass that checks pipelines ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_VERIFIER_H
#define CHIMERA_PASSES_VERIFIER_H

#include "dialect/Chimera.h"

namespace chimera {

/// A module pass with base `Base` that calls `verify` for every pipeline and
/// changes nothing. Fails if any call fails.
template <typename Base, mlir::LogicalResult (*verify)(PipelineOp)>
struct Verifier : Base {
  void runOnOperation() override {
    for (auto pipeline : this->getOperation().template getOps<PipelineOp>())
      if (mlir::failed(verify(pipeline)))
        this->signalPassFailure();
    this->markAllAnalysesPreserved();
  }
};

} // namespace chimera

#endif // CHIMERA_PASSES_VERIFIER_H
