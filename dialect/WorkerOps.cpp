//===- WorkerOps.cpp - One stream per worker ------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Chimera.h"

using namespace mlir;
using namespace chimera;

LogicalResult WorkerOp::verify() {
  Block &block = getBody().front();
  if (block.empty() || !isa<YieldOp>(block.back()))
    return emitOpError("expected a chimera.yield at its end");
  if (getHolds().size() != block.getNumArguments())
    return emitOpError("expected weights and optimizer state for each replica "
                       "it holds, got ")
           << block.getNumArguments() << " arguments for "
           << getHolds().size() / 2 << " replicas";
  if (!llvm::equal(block.getArgumentTypes(), block.back().getOperandTypes()))
    return emitOpError("expected the yielded types to be the arguments'");
  return success();
}

LogicalResult BufferOp::verify() {
  if (isa<StashType>(getType()) == getOffset().has_value())
    return emitOpError("expected ")
           << (getOffset() ? "no offset for a stash"
                           : "an offset for anything but a stash");
  return success();
}
