//===- Buffers.cpp - Which buffer holds a value ---------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Buffers.h"

using namespace mlir;

namespace chimera {

void forEachInstruction(WorkerOp worker,
                        function_ref<void(Operation *)> visit) {
  for (Operation &op : worker.getBody().front().without_terminator()) {
    if (isa<BufferOp>(op))
      continue;
    visit(&op);
    if (auto group = dyn_cast<GroupOp>(op))
      for (Operation &post : group.getPosts().front().without_terminator())
        visit(&post);
  }
}

OpOperand *updatedOperand(OpResult result) {
  Operation *op = result.getOwner();
  // What the weight gradient needs takes the place of what the forward left.
  if (auto first = dyn_cast<InputGradientOp>(op))
    return result == first.getRest() &&
                   result.getType() == first.getStash().getType()
               ? &first.getStashMutable()
               : nullptr;
  if (auto action = dyn_cast<ActionOp>(op))
    return result.getResultNumber() == 0 ? action.getAccumulator() : nullptr;
  if (isa<OptimizerStepOp>(op))
    return &op->getOpOperand(result.getResultNumber());
  // A worker with one contribution gets the sum in its place.
  if (isa<AllReduceStartOp>(op) && op->getNumOperands() == 1)
    return &op->getOpOperand(0);
  return nullptr;
}

std::optional<int32_t> bufferOf(WorkerOp worker, Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (!worker.getArguments())
      return std::nullopt;
    return (*worker.getArguments())[argument.getArgNumber()];
  }
  auto result = cast<OpResult>(value);
  if (auto group = dyn_cast<GroupOp>(result.getOwner()))
    return bufferOf(worker,
                    group.getPosts().front().getTerminator()->getOperand(
                        result.getResultNumber()));
  auto placed = dyn_cast<PlacedOp>(result.getOwner());
  if (!placed || !placed.getBuffers() ||
      result.getResultNumber() >= placed.getBuffers()->size())
    return std::nullopt;
  return (*placed.getBuffers())[result.getResultNumber()];
}

} // namespace chimera
