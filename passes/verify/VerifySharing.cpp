//===- VerifySharing.cpp - Values and channels between workers ------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/verify/Verifier.h"

#include "passes/schedule/Sections.h"
#include "passes/verify/Channels.h"

using namespace mlir;

namespace chimera {

namespace {

class SharingVerifier {
public:
  /// `argumentWorkers` has the worker of each argument of the section.
  /// `yieldedWorkers` has the worker of each value that the section yields.
  SharingVerifier(Block &section, ArrayRef<uint32_t> argumentWorkers,
                  ArrayRef<uint32_t> yieldedWorkers, bool isSplit)
      : section(section), argumentWorkers(argumentWorkers),
        yieldedWorkers(yieldedWorkers), isSplit(isSplit) {}

  LogicalResult run() {
    for (Operation &op : section.without_terminator())
      visit(op);
    for (auto [i, worker] : llvm::enumerate(yieldedWorkers))
      visitOperand(section.back(), section.back().getOperand(i), worker);
    return success(succeeded(channels.verify()) && !failed);
  }

private:
  InFlightDiagnostic report(Operation *op, const Twine &message) {
    failed = true;
    return op->emitOpError(message);
  }

  void visit(Operation &op) {
    if (!isSplit && isa<AllReduceOp>(op))
      return;
    auto placed = dyn_cast<PlacedOp>(op);
    if (!placed || !placed.getWorker()) {
      report(&op, "expected an op that names its worker");
      return;
    }
    uint32_t worker = *placed.getWorker();
    visitOperands(op, worker);
    failed |= mlir::failed(verifyAwaited(op));
    channels.add(op, worker);
    if (auto group = dyn_cast<GroupOp>(op))
      for (Operation &inner : group.getPosts().front().without_terminator())
        visitOperands(inner, worker);
  }

  void visitOperands(Operation &op, uint32_t worker) {
    for (Value operand : op.getOperands())
      visitOperand(op, operand, worker);
  }

  void visitOperand(Operation &op, Value operand, uint32_t worker) {
    std::optional<uint32_t> owner;
    if (auto producer = dyn_cast_or_null<PlacedOp>(operand.getDefiningOp()))
      owner = producer.getWorker();
    else if (auto argument = dyn_cast<BlockArgument>(operand))
      owner = argumentWorkers[argument.getArgNumber()];
    if (owner && owner != worker)
      report(&op, "expected values of worker ")
          << worker << ", got one of worker " << *owner;
  }

  Block &section;
  ArrayRef<uint32_t> argumentWorkers, yieldedWorkers;
  bool isSplit;
  bool failed = false;
  Channels channels;
};

} // namespace

LogicalResult verifySharing(PipelineOp pipeline, bool isSplit) {
  FailureOr<SmallVector<SectionOp, 3>> sections = sectionsOf(pipeline);
  if (failed(sections))
    return failure();
  FailureOr<Layout> layout = layoutOf(pipeline);
  if (failed(layout) || failed(verifyReplicas(*sections, *layout)))
    return failure();
  LogicalResult result = success();
  for (SectionOp section : *sections) {
    Block &block = section.getBody().front();
    SmallVector<uint32_t> argumentWorkers =
        ownerWorkers(block.getArgumentTypes(), *layout);
    SmallVector<uint32_t> yieldedWorkers =
        ownerWorkers(block.back().getOperandTypes(), *layout);
    if (failed(SharingVerifier(block, argumentWorkers, yieldedWorkers, isSplit)
                   .run()))
      result = failure();
  }
  if (failed(verifySections(pipeline)))
    return failure();
  return result;
}

} // namespace chimera
