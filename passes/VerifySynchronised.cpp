//===- VerifySynchronised.cpp - Workers share only channels ---------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Bridge.h"
#include "passes/Passes.h"
#include "passes/Sections.h"

#include <map>

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_VERIFYSYNCHRONISEDPASS
#include "passes/Passes.h.inc"

namespace {

class Verifier {
public:
  /// `takenOn` and `leftOn` are the workers that have what the section takes
  /// and yields; none are known for a step alone.
  Verifier(Block &section, ArrayRef<uint32_t> takenOn,
           ArrayRef<uint32_t> leftOn)
      : section(section), takenOn(takenOn), leftOn(leftOn) {}

  LogicalResult run() {
    for (Operation &op : section.without_terminator())
      visit(op);
    for (auto [i, worker] : llvm::enumerate(leftOn))
      visitOperand(section.back(), section.back().getOperand(i), worker);
    for (auto &[channel, posts] : channels)
      match(channel.first, channel.second, posts.first, posts.second);
    return success(!failed);
  }

private:
  using Channel = std::pair<uint32_t, uint32_t>;

  InFlightDiagnostic report(Operation *op, const Twine &message) {
    failed = true;
    return op->emitOpError(message);
  }

  void visit(Operation &op) {
    auto placed = dyn_cast<PlacedOp>(op);
    if (!placed || !placed.getWorker()) {
      report(&op, "expected an op that names its worker");
      return;
    }
    uint32_t worker = *placed.getWorker();
    visitOperands(op, worker);
    for (Value result : op.getResults())
      if (isa<SendingType, ArrivingType>(result.getType()) &&
          !result.hasOneUse())
        report(&op, "expected its transfer to be waited for once, got ")
            << llvm::range_size(result.getUses()) << " uses";
    post(op, worker);
    if (auto group = dyn_cast<GroupOp>(op))
      for (Operation &inner : group.getPosts().front().without_terminator()) {
        visitOperands(inner, worker);
        post(inner, worker);
      }
  }

  void visitOperands(Operation &op, uint32_t worker) {
    for (Value operand : op.getOperands())
      visitOperand(op, operand, worker);
  }

  void visitOperand(Operation &op, Value operand, uint32_t worker) {
    std::optional<uint32_t> home;
    if (auto producer = dyn_cast_or_null<PlacedOp>(operand.getDefiningOp()))
      home = producer.getWorker();
    else if (auto argument = dyn_cast<BlockArgument>(operand);
             argument && !takenOn.empty())
      home = takenOn[argument.getArgNumber()];
    if (home && home != worker)
      report(&op, "expected values of worker ")
          << worker << ", got one of worker " << *home;
  }

  void post(Operation &op, uint32_t worker) {
    if (auto send = dyn_cast<PostSendOp>(op))
      channels[{worker, send.getPeer()}].first.push_back(send);
    else if (auto receive = dyn_cast<PostReceiveOp>(op))
      channels[{receive.getPeer(), worker}].second.push_back(receive);
  }

  /// Compares a channel's sends and receives; the first that differ say why.
  void match(uint32_t from, uint32_t to, MutableArrayRef<PostSendOp> sends,
             MutableArrayRef<PostReceiveOp> receives) {
    for (auto [send, receive] : llvm::zip(sends, receives)) {
      bool agree = receive.getTransfer().getType().getValue() ==
                       send.getValue().getType() &&
                   send.getPipeline() == receive.getPipeline() &&
                   send.getStage() == receive.getStage() &&
                   send.getMicroBatch() == receive.getMicroBatch() &&
                   send.getCount() == receive.getCount() &&
                   send.getPart() == receive.getPart() &&
                   send.getParts() == receive.getParts();
      if (agree)
        continue;
      report(send, "expected the receive that it meets to have its type and "
                   "label")
              .attachNote(receive.getLoc())
          << "it meets this one on worker " << to;
      return;
    }
    if (sends.size() > receives.size())
      report(sends[receives.size()], "expected a receive on worker ")
          << to << " that it meets, found none";
    else if (receives.size() > sends.size())
      report(receives[sends.size()], "expected a send on worker ")
          << from << " that it meets, found none";
  }

  Block &section;
  ArrayRef<uint32_t> takenOn, leftOn;
  bool failed = false;
  std::map<Channel,
           std::pair<std::vector<PostSendOp>, std::vector<PostReceiveOp>>>
      channels;
};

LogicalResult verify(PipelineOp pipeline) {
  FailureOr<SmallVector<SectionOp, 3>> sections = sectionsOf(pipeline);
  if (failed(sections))
    return failure();
  FailureOr<Layout> layout;
  if (stepsOverlap(*sections)) {
    layout = layoutOf(pipeline);
    if (failed(layout) || failed(verifyReplicas(*sections, *layout)))
      return failure();
  }
  LogicalResult result = success();
  for (SectionOp section : *sections) {
    Block &block = section.getBody().front();
    SmallVector<uint32_t> takenOn, leftOn;
    if (succeeded(layout)) {
      takenOn = homesOf(block.getArgumentTypes(), *layout);
      leftOn = homesOf(block.back().getOperandTypes(), *layout);
    }
    if (failed(Verifier(block, takenOn, leftOn).run()))
      result = failure();
  }
  return success(succeeded(result) && succeeded(verifySections(pipeline)));
}

struct VerifySynchronised
    : impl::VerifySynchronisedPassBase<VerifySynchronised> {
  void runOnOperation() override {
    for (auto pipeline : getOperation().getOps<PipelineOp>())
      if (mlir::failed(verify(pipeline)))
        signalPassFailure();
  }
};

} // namespace
} // namespace chimera
