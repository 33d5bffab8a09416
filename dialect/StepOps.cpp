//===- StepOps.cpp - A training step in SSA -------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/State.h"

using namespace mlir;
using namespace chimera;

LogicalResult chimera::verifyState(Operation *op, Block &block) {
  if (block.empty() || !isa<YieldOp>(block.back()))
    return op->emitOpError("expected a chimera.yield at its end");
  bool pairs = block.getNumArguments() % 2 == 0;
  for (auto [index, type] : llvm::enumerate(block.getArgumentTypes()))
    pairs &=
        index % 2 == 0 ? isa<WeightsType>(type) : isa<OptimizerStateType>(type);
  if (!pairs)
    return op->emitOpError("expected weights and optimizer state in turn as "
                           "arguments, got ")
           << block.getArgumentTypes();
  if (!llvm::equal(block.getArgumentTypes(), block.back().getOperandTypes()))
    return op->emitOpError("expected the yielded types to be the arguments'");
  return success();
}

LogicalResult StepOp::verify() { return verifyState(*this, getBody().front()); }

/// Stage 0 has no input gradient to give, every other stage has one.
template <typename Op> static LogicalResult verifyInputGradient(Op op) {
  if ((op.getStage() == 0) == static_cast<bool>(op.getInputGradient()))
    return op.emitOpError("expected ")
           << (op.getStage() == 0 ? "no input gradient on stage 0"
                                  : "an input gradient on a stage after 0");
  return success();
}

/// A sum is updated, not changed into something else.
template <typename Op> static LogicalResult verifySum(Op op) {
  if (op.getSum().getType() != op.getNewSum().getType())
    return op.emitOpError("expected the sum to keep its type ")
           << op.getSum().getType() << ", got " << op.getNewSum().getType();
  return success();
}

LogicalResult ForwardOp::verify() {
  if ((getStage() == 0) != isa<TokensType>(getInput().getType()))
    return emitOpError("expected ")
           << (getStage() == 0 ? "tokens" : "an activation")
           << " as input of stage " << getStage() << ", got "
           << getInput().getType();
  if (static_cast<bool>(getLabels()) != isa<LossType>(getOutput().getType()))
    return emitOpError("expected labels if and only if it yields a loss");
  return success();
}

OpOperand *ForwardOp::getAccumulator() { return nullptr; }

LogicalResult BackwardOp::verify() {
  return success(succeeded(verifySum(*this)) &&
                 succeeded(verifyInputGradient(*this)));
}

OpOperand *BackwardOp::getAccumulator() { return &getSumMutable(); }

LogicalResult InputGradientOp::verify() { return verifyInputGradient(*this); }

OpOperand *InputGradientOp::getAccumulator() { return nullptr; }

LogicalResult WeightGradientOp::verify() { return verifySum(*this); }

OpOperand *WeightGradientOp::getAccumulator() { return &getSumMutable(); }

LogicalResult AllReduceOp::verify() {
  if (getSummands().empty())
    return emitOpError("expected at least one summand");
  Type type = getSummands().front().getType();
  if (!llvm::all_equal(getSummands().getTypes()))
    return emitOpError("expected summands of one type");
  size_t sums = isa<LossType>(type) ? 1 : getSummands().size();
  if (getSums().size() != sums ||
      llvm::any_of(getSums().getTypes(), [&](Type t) { return t != type; }))
    return emitOpError("expected ") << sums << " results of type " << type
                                    << ", got " << getSums().getTypes();
  return success();
}
