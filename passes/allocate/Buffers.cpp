//===- Buffers.cpp - The buffer of a value --------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/allocate/Buffers.h"

#include "passes/Prefetch.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace chimera {

void forEachInstruction(Block &section, function_ref<void(Operation *)> visit) {
  for (Operation &op : section.without_terminator()) {
    prefetchNext(op);
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
  if (auto action = dyn_cast<ActionOp>(op))
    return result.getResultNumber() == 0 ? action.getSumOperand() : nullptr;
  if (isa<OptimizerStepOp>(op))
    return &op->getOpOperand(result.getResultNumber());
  // An all-reduce of gradients writes its sum into the worker's first
  // contribution. The sum of the losses has a buffer of its own.
  if (isa<AllReduceStartOp>(op) &&
      isa<WeightGradientType>(op->getOperand(0).getType()))
    return &op->getOpOperand(0);
  if (auto overwrite = dyn_cast<OverwriteOp>(op))
    return &overwrite.getPlaceMutable();
  return nullptr;
}

/// True if the arguments of the section are the weights and optimizer states of
/// the worker's replicas, which WorkerOp::getArguments describes.
static bool isFirst(WorkerOp worker, Block &section) {
  return worker.getPrologue().empty() ||
         &section == &worker.getPrologue().front();
}

std::optional<ArrayRef<int32_t>> buffersInNextSection(WorkerOp worker,
                                                      Block &section) {
  bool last =
      worker.getEpilogue().empty() || &section == &worker.getEpilogue().front();
  return last ? worker.getArguments() : worker.getLoopCarried();
}

std::optional<BufferRenames> buffersToRename(WorkerOp worker, Block &section) {
  std::optional<ArrayRef<int32_t>> targets =
      buffersInNextSection(worker, section);
  if (!targets)
    return std::nullopt;
  BufferRenames result;
  llvm::DenseSet<int32_t> all, from, to;
  DenseMap<int32_t, Type> types;
  for (auto [value, target] :
       llvm::zip(section.getTerminator()->getOperands(), *targets)) {
    std::optional<int32_t> buffer = bufferOf(worker, value);
    if (!buffer || !all.insert(*buffer).second)
      return std::nullopt;
    if (*buffer == target)
      continue;
    result.push_back({*buffer, target});
    from.insert(*buffer);
    to.insert(target);
    types[*buffer] = types[target] = value.getType();
  }
  // If a buffer gets the name of another buffer that gets no new name, give the
  // other buffer a name that became free.
  SmallVector<int32_t> left, open;
  for (auto [source, target] : ArrayRef(result)) {
    if (!to.contains(source))
      open.push_back(source);
    if (!from.contains(target))
      left.push_back(target);
  }
  for (int32_t source : left) {
    auto target = llvm::find_if(
        open, [&](int32_t b) { return types[b] == types[source]; });
    if (target == open.end())
      return std::nullopt;
    result.push_back({source, *target});
    open.erase(target);
  }
  return result;
}

std::optional<int32_t> bufferOf(WorkerOp worker, Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    std::optional<ArrayRef<int32_t>> buffers =
        isFirst(worker, *argument.getOwner()) ? worker.getArguments()
                                              : worker.getLoopCarried();
    if (!buffers)
      return std::nullopt;
    return (*buffers)[argument.getArgNumber()];
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
