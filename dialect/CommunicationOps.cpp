//===- CommunicationOps.cpp - Messages and all-reduces --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Checks.h"

using namespace mlir;
using namespace chimera;

template <typename Op> static LogicalResult verifyPost(Op op) {
  if (op.getWorker() && *op.getWorker() == op.getPeer())
    return op.emitOpError("expected another worker as peer, got worker ")
           << op.getPeer() << " itself";
  if (op.getParts() > 1 && op.getCount() > 1)
    return op.emitOpError("expected a part of one micro-batch, got one of ")
           << op.getCount();
  return verifyPart(op, op.getPart(), op.getParts());
}

LogicalResult PostSendOp::verify() { return verifyPost(*this); }

LogicalResult PostReceiveOp::verify() {
  Type brought = getTransfer().getType().getValue();
  if (!isa<ActivationType, GradientType>(brought))
    return emitOpError("expected an activation or a gradient to arrive, got ")
           << brought;
  return verifyPost(*this);
}

LogicalResult GroupOp::verify() {
  Block &block = getPosts().front();
  auto yield = block.empty() ? nullptr : dyn_cast<YieldOp>(block.back());
  if (!yield)
    return emitOpError("expected a chimera.yield at its end");
  SmallVector<Value> posted;
  for (Operation &op : block.without_terminator()) {
    if (!isa<PostSendOp, PostReceiveOp>(op))
      return op.emitOpError("expected only posts in a group");
    if (cast<PlacedOp>(op).getWorker() != getWorker())
      return op.emitOpError("expected a post on the worker of its group");
    posted.push_back(op.getResult(0));
  }
  if (posted.empty())
    return emitOpError("expected at least one post");
  if (!llvm::equal(posted, yield.getValues()))
    return emitOpError("expected it to yield the transfers it posts, in order");
  if (!llvm::equal(getTransfers().getTypes(), yield.getValues().getTypes()))
    return emitOpError("expected its results to be the transfers it yields");
  return success();
}

LogicalResult AllReduceStartOp::verify() {
  if (getWorkers().size() != getKeys().size())
    return emitOpError("expected a key for each contribution, got ")
           << getKeys().size() << " keys for " << getWorkers().size();
  Type brought = getTransfer().getType().getValue();
  if (!isa<WeightGradientType, LossType, SquaredNormType>(brought))
    return emitOpError("expected a weight gradient, a loss or a squared norm "
                       "to arrive, got ")
           << brought;
  if (getBucket() >= getBuckets())
    return emitOpError("expected a bucket below ")
           << getBuckets() << ", got " << getBucket();
  if (getBuckets() > 1 && !isa<WeightGradientType>(brought))
    return emitOpError("expected ")
           << (sumsNorms() ? "squared norms" : "losses")
           << " in one bucket, got " << getBuckets();
  if (failed(verifyTied(*this, getKeys().size(), brought)) ||
      failed(verifyNorms(*this, getKeys().size())))
    return failure();
  for (size_t i = 0; getTied() && i < getKeys().size(); i += 2)
    if (getKeys()[i] != getKeys()[i + 1])
      return emitOpError("expected tied contributions in pairs of one key, got "
                         "keys ")
             << getKeys()[i] << " and " << getKeys()[i + 1];
  for (Type type : getContributions().getTypes())
    if (type != brought)
      return emitOpError("expected contributions of type ")
             << brought << ", got " << type;
  if (getWorker()) {
    auto own = static_cast<size_t>(
        llvm::count(getWorkers(), static_cast<int32_t>(*getWorker())));
    if (own != getContributions().size())
      return emitOpError("expected ")
             << own << " contributions of worker " << *getWorker() << ", got "
             << getContributions().size();
  }
  return success();
}

/// Fails, with a diagnostic, unless there are at least two pieces and the sum
/// of their bytes is the number of bytes of the whole.
static LogicalResult verifyPieces(Operation *op, WeightGradientType whole,
                                  TypeRange pieces) {
  if (pieces.size() < 2)
    return op->emitOpError("expected at least two pieces, got ")
           << pieces.size();
  int64_t rest = whole.getBytes();
  for (Type piece : pieces) {
    int64_t bytes = cast<WeightGradientType>(piece).getBytes();
    if (bytes > rest)
      return op->emitOpError("expected pieces with a sum of ")
             << whole.getBytes() << " bytes, got more";
    rest -= bytes;
  }
  if (rest > 0)
    return op->emitOpError("expected pieces with a sum of ")
           << whole.getBytes() << " bytes, got " << whole.getBytes() - rest;
  return success();
}

LogicalResult SplitOp::verify() {
  return verifyPieces(*this, getGradient().getType(), getPieces().getTypes());
}

LogicalResult JoinOp::verify() {
  return verifyPieces(*this, getGradient().getType(), getPieces().getTypes());
}

LogicalResult WaitOp::verify() {
  auto arriving = dyn_cast<ArrivingType>(getTransfer().getType());
  if (!arriving) {
    if (getValue())
      return emitOpError("expected no result for a send");
    return success();
  }
  if (!getValue() || getValue().getType() != arriving.getValue())
    return emitOpError("expected a result of type ") << arriving.getValue();
  return success();
}
