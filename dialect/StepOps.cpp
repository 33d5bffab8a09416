//===- StepOps.cpp - A training step in SSA -------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Checks.h"
#include "dialect/LoopCarried.h"

using namespace mlir;
using namespace chimera;

LogicalResult PrologueOp::verify() {
  return verifySection(*this, getBody().front(), SectionKind::Prologue);
}

LogicalResult StepOp::verify() {
  return verifySection(*this, getBody().front(), SectionKind::Step);
}

LogicalResult EpilogueOp::verify() {
  return verifySection(*this, getBody().front(), SectionKind::Epilogue);
}

/// Fails, with a diagnostic, if the op is on stage 0 and yields an input
/// gradient, or if it is on another stage and yields none.
template <typename Op> static LogicalResult verifyInputGradient(Op op) {
  if ((op.getStage() == 0) == static_cast<bool>(op.getInputGradient()))
    return op.emitOpError("expected ")
           << (op.getStage() == 0 ? "no input gradient on stage 0"
                                  : "an input gradient on a stage after 0");
  return success();
}

/// Fails, with a diagnostic, if the sum of gradients in the operand has another
/// type than the sum in the result.
template <typename Op> static LogicalResult verifySum(Op op) {
  if (op.getSum() && op.getSum().getType() != op.getNewSum().getType())
    return op.emitOpError("expected the sum to keep its type ")
           << op.getSum().getType() << ", got " << op.getNewSum().getType();
  return success();
}

/// Fails, with a diagnostic, if the op is on stage 0 and does not read tokens,
/// or if it is on another stage and does not read an activation.
template <typename Op> static LogicalResult verifyInput(Op op) {
  if ((op.getStage() == 0) != isa<TokensType>(op.getInput().getType()))
    return op.emitOpError("expected ")
           << (op.getStage() == 0 ? "tokens" : "an activation")
           << " as input of stage " << op.getStage() << ", got "
           << op.getInput().getType();
  return success();
}

LogicalResult chimera::verifyPart(Operation *op, uint32_t part,
                                  uint32_t parts) {
  if (part >= parts)
    return op->emitOpError("expected a part below ")
           << parts << ", got " << part;
  return success();
}

template <typename Op> static LogicalResult verifyPiece(Op op) {
  return chimera::verifyPart(op, op.getPart(), op.getParts());
}

LogicalResult ForwardOp::verify() {
  if (failed(verifyInput(*this)))
    return failure();
  TypeRange types = getValues().getTypes();
  size_t outputs = getOutputCount();
  bool last = static_cast<bool>(getLabels());
  bool good = types.size() >= outputs;
  for (size_t i = 0; good && i < types.size(); ++i)
    good = i >= outputs ? isa<StashType>(types[i])
           : last       ? isa<LossType>(types[i])
                        : isa<ActivationType>(types[i]);
  if (good)
    return success();
  InFlightDiagnostic error = emitOpError("expected ");
  if (last)
    error << outputs << " losses, as it takes labels,";
  else
    error << "an activation, as it takes no labels,";
  return error << " and then stashes, got " << types;
}

void ForwardOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  if (getNumResults() < getOutputCount())
    return;
  setName(getOutputs().front(), "output");
  if (!getStashes().empty())
    setName(getStashes().front(), "stash");
}

LogicalResult RecomputeOp::verify() {
  return success(succeeded(verifyInput(*this)) &&
                 succeeded(verifyPiece(*this)));
}

LogicalResult BackwardOp::verify() {
  return success(succeeded(verifySum(*this)) &&
                 succeeded(verifyInputGradient(*this)) &&
                 succeeded(verifyPiece(*this)));
}

LogicalResult InputGradientOp::verify() {
  return success(succeeded(verifyInputGradient(*this)) &&
                 succeeded(verifyPiece(*this)));
}

LogicalResult WeightGradientOp::verify() {
  return success(succeeded(verifySum(*this)) && succeeded(verifyPiece(*this)));
}

LogicalResult AllReduceOp::verify() {
  if (getContributions().empty())
    return emitOpError("expected at least one contribution");
  Type type = getContributions().front().getType();
  if (!llvm::all_equal(getContributions().getTypes()))
    return emitOpError("expected contributions of one type");
  size_t sums = isa<LossType>(type) ? 1 : getContributions().size();
  if (getSums().size() != sums ||
      llvm::any_of(getSums().getTypes(), [&](Type t) { return t != type; }))
    return emitOpError("expected ") << sums << " results of type " << type
                                    << ", got " << getSums().getTypes();
  return success(
      succeeded(verifyTied(*this, getContributions().size(), type)) &&
      succeeded(verifyNorms(*this, getContributions().size())));
}
