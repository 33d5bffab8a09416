//===- WorkerOps.cpp - One stream per worker ------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/LoopCarried.h"

using namespace mlir;
using namespace chimera;

std::optional<uint64_t> WorkerOp::allocatedBytes() {
  if (!getArenaBytes() || !getStashBytes())
    return std::nullopt;
  return *getArenaBytes() + *getStashBytes();
}

SmallVector<Block *, 3> WorkerOp::getSections() {
  SmallVector<Block *, 3> sections;
  for (Region *region : getRegions())
    if (!region->empty())
      sections.push_back(&region->front());
  return sections;
}

/// Fails, with a diagnostic, if `buffers` are given and there is not one for
/// each argument of `block`.
static LogicalResult verifyBuffers(WorkerOp op,
                                   std::optional<ArrayRef<int32_t>> buffers,
                                   Block &block) {
  if (buffers && buffers->size() != block.getNumArguments())
    return op.emitOpError("expected a buffer for each of ")
           << block.getNumArguments() << " arguments, got " << buffers->size();
  return success();
}

LogicalResult WorkerOp::verify() {
  if (getPrologue().empty() != getEpilogue().empty())
    return emitOpError("expected a prologue and an epilogue or neither");
  SmallVector<Block *, 3> sections = getSections();
  constexpr SectionKind kAll[] = {SectionKind::Prologue, SectionKind::Step,
                                  SectionKind::Epilogue};
  for (auto [section, block] : llvm::zip(
           ArrayRef(kAll).drop_front(sections.size() == 1 ? 1 : 0), sections))
    if (failed(verifySection(*this, *block, section)))
      return failure();
  if (failed(verifyLoopCarried(*this, sections)))
    return failure();
  Block &first = *sections.front();
  if (getHolds().size() != first.getNumArguments())
    return emitOpError("expected weights and optimizer state for each replica "
                       "that holds lists, got ")
           << first.getNumArguments() << " arguments for "
           << getHolds().size() / 2 << " replicas";
  if (failed(verifyBuffers(*this, getArguments(), first)))
    return failure();
  if (sections.size() > 1) {
    if (failed(verifyBuffers(*this, getLoopCarried(), *sections[1])))
      return failure();
  } else if (getLoopCarried()) {
    return emitOpError("expected no loop_carried without a prologue");
  }
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
  if (isStash(getType()) == getOffset().has_value())
    return emitOpError("expected ")
           << (getOffset() ? "no offset for a stash"
                           : "an offset for anything but a stash");
  return success();
}
