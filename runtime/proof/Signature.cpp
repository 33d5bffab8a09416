//===- Signature.cpp - Operands and results of opcodes --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/Signature.h"

namespace chimera::program::verify {

Signature signatureOf(Opcode opcode, bool first, bool last, bool beginsSum) {
  using Kind = ValueKind;
  Signature signature;
  auto inputs = [&] {
    signature.operand(first ? Kind::Tokens : Kind::Activation);
    signature.operand(Kind::Weights);
    if (last)
      signature.operand(Kind::Labels);
  };
  auto addsToSum = [&] {
    if (beginsSum)
      return signature.result(Kind::WeightGradient);
    signature.operand(Kind::WeightGradient);
    signature.result(Kind::WeightGradient, signature.operands - 1);
  };
  switch (opcode) {
  case Opcode::ZeroGradient:
    signature.result(Kind::WeightGradient);
    break;
  case Opcode::Forward:
    inputs();
    signature.result(last ? Kind::Loss : Kind::Activation);
    break;
  case Opcode::Recompute:
    inputs();
    signature.result(Kind::Stash);
    break;
  case Opcode::Backward:
    signature.operand(Kind::Stash);
    signature.operand(last ? Kind::Loss : Kind::Gradient);
    signature.operand(Kind::Weights);
    addsToSum();
    if (!first)
      signature.result(Kind::Gradient);
    break;
  case Opcode::InputGradient:
    signature.operand(Kind::Stash);
    signature.operand(last ? Kind::Loss : Kind::Gradient);
    signature.operand(Kind::Weights);
    signature.result(Kind::WeightStash);
    if (!first)
      signature.result(Kind::Gradient);
    break;
  case Opcode::WeightGradient:
    signature.operand(Kind::WeightStash);
    signature.operand(Kind::Weights);
    addsToSum();
    break;
  case Opcode::OptimizerStep:
    signature.operand(Kind::Weights);
    signature.operand(Kind::OptimizerState);
    signature.operand(Kind::WeightGradient);
    signature.result(Kind::Weights, 0);
    signature.result(Kind::OptimizerState, 1);
    signature.mayMove = true;
    break;
  default:
    break;
  }
  return signature;
}

} // namespace chimera::program::verify
