//===- Signature.cpp - Operands and results of opcodes --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/Signature.h"

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

namespace chimera::program::verify {

Signature signatureOf(Opcode opcode, bool first, bool last, bool beginsSum,
                      bool clips) {
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
  case Opcode::SquaredNorm:
    signature.operand(Kind::WeightGradient);
    signature.result(Kind::SquaredNorm);
    break;
  case Opcode::OptimizerStep:
    signature.operand(Kind::Weights);
    signature.operand(Kind::OptimizerState);
    signature.operand(Kind::WeightGradient);
    if (clips)
      signature.operand(Kind::SquaredNorm);
    signature.result(Kind::Weights, 0);
    signature.result(Kind::OptimizerState, 1);
    signature.mayMove = true;
    break;
  default:
    break;
  }
  return signature;
}

namespace {

/// The names of kind(begin), ..., kind(end - 1) as a text, but at most 8 of
/// them.
std::string kindList(size_t begin, size_t end,
                     const std::function<ValueKind(size_t)> &kind) {
  std::string list = "(";
  for (size_t k = begin; k < std::min(end, begin + 8); ++k)
    list += (k > begin ? ", " : "") + std::string(nameOf(kind(k)));
  return list + ")";
}

std::string faultOfKinds(const WorkerT &worker, const Instruction &instruction,
                         const Signature &signature, bool isLast) {
  const uint32_t *buffers =
      worker.operands.data() + instruction.first_operand();
  size_t operands = signature.operands;
  size_t count = operands + signature.results;
  bool isForward = instruction.opcode() == Opcode::Forward;
  // The signature of a forward has one loss and no stash. On the last stage, a
  // forward has one loss for each micro-batch. It can have any number of
  // stashes.
  uint32_t losses = 0;
  if (isForward) {
    losses = isLast ? instruction.micro_batches() - 1 : 0;
    count =
        operands + std::max<size_t>(instruction.results(), size_t(1) + losses);
  }
  auto expected = [&](size_t k) {
    if (!isForward || k < operands)
      return signature.kinds[k];
    return k <= operands + losses ? signature.kinds[operands]
                                  : ValueKind::Stash;
  };
  auto found = [&](size_t k) { return worker.buffers[buffers[k]].kind(); };
  size_t given = size_t(instruction.operands()) + instruction.results();
  bool agrees = instruction.operands() == operands && given == count;
  for (size_t k = 0; agrees && k < count; ++k)
    agrees = found(k) == expected(k);
  if (agrees)
    return "";
  return "expected " + kindList(0, operands, expected) + " -> " +
         kindList(operands, count, expected) + ", got " +
         kindList(0, instruction.operands(), found) + " -> " +
         kindList(instruction.operands(), given, found);
}

/// An error text if a result uses the buffer of an operand or of another result
/// although it must not, or does not use the buffer of an operand although it
/// must. Otherwise an empty text.
std::string faultOfBuffers(const WorkerT &worker,
                           const Instruction &instruction,
                           const Signature &signature) {
  std::span<const uint32_t> operands = operandsOf(worker, instruction);
  std::span<const uint32_t> results = resultsOf(worker, instruction);
  auto isOperand = [&](uint32_t buffer) {
    return std::ranges::find(operands, buffer) != operands.end();
  };
  bool hasTwice = results.size() == 2 && results[0] == results[1];
  if (results.size() > 2) {
    std::vector<uint32_t> sorted(results.begin(), results.end());
    std::ranges::sort(sorted);
    hasTwice = std::ranges::adjacent_find(sorted) != sorted.end();
  }
  for (size_t r = 0; r < results.size(); ++r) {
    uint32_t result = results[r];
    if (r < signature.results && signature.inPlace[r] != kNotInPlace) {
      uint32_t expected = operands[signature.inPlace[r]];
      bool isApart = r == 0 && signature.mayMove && !isOperand(result);
      if (result == expected || isApart)
        continue;
      return std::string("expected the ") +
             nameOf(signature.kinds[signature.operands + r]) +
             " in place in buffer " + std::to_string(expected) +
             ", got buffer " + std::to_string(result);
    }
    if (hasTwice || isOperand(result))
      return "expected a result apart from its other buffers, got buffer " +
             std::to_string(result) + " twice";
  }
  return "";
}

} // namespace

std::string faultOf(const WorkerT &worker, const Instruction &instruction,
                    const Signature &signature, bool isLast) {
  std::string fault = faultOfKinds(worker, instruction, signature, isLast);
  return fault.empty() ? faultOfBuffers(worker, instruction, signature) : fault;
}

} // namespace chimera::program::verify
