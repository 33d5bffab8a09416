//===- WorkerOps.cpp - One stream per worker ------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/State.h"

using namespace mlir;
using namespace chimera;

LogicalResult WorkerOp::verify() {
  Block &block = getBody().front();
  if (failed(verifyState(*this, block)))
    return failure();
  if (getHolds().size() != block.getNumArguments())
    return emitOpError("expected weights and optimizer state for each replica "
                       "it holds, got ")
           << block.getNumArguments() << " arguments for "
           << getHolds().size() / 2 << " replicas";
  if (getArguments() && getArguments()->size() != block.getNumArguments())
    return emitOpError("expected a buffer for each of ")
           << block.getNumArguments() << " arguments, got "
           << getArguments()->size();
  if (getPeakBytes().has_value() != getPeakInstruction().has_value())
    return emitOpError("expected a peak and its instruction or neither");
  return success();
}

LogicalResult BufferOp::verify() {
  if (Operation *before = (*this)->getPrevNode();
      isa_and_nonnull<PlacedOp>(before))
    return emitOpError("expected a worker's buffers before its instructions");
  if (!isa<SizedType>(getType()))
    return emitOpError("expected a type with a size, got ") << getType();
  if (isa<StashType>(getType()) == getOffset().has_value())
    return emitOpError("expected ")
           << (getOffset() ? "no offset for a stash"
                           : "an offset for anything but a stash");
  return success();
}
