//===- Allocate.cpp - Buffers for the values of all workers ---------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/Workers.h"
#include "passes/allocate/Allocator.h"

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_ALLOCATEPASS
#include "passes/Passes.h.inc"

namespace {

struct Allocate : impl::AllocatePassBase<Allocate> {
  void runOnOperation() override {
    if (failed(requireProjected(getOperation())) ||
        failed(allocate(getOperation())))
      signalPassFailure();
  }
};

} // namespace
} // namespace chimera
