//===- Sizes.cpp - Sizes and offsets of buffers ---------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/Sizes.h"

#include "runtime/program/Layers.h"
#include "runtime/program/Saturated.h"
#include "runtime/proof/Facts.h"

namespace chimera::program::verify {

Sizes::Sizes(const ProgramT &program, const BackwardPieces &pieces)
    : program(program), pieces(pieces) {
  if (!program.model)
    return;
  tokenBytes = static_cast<uint64_t>(
      inputBytes(*program.model, program.micro_batch_size));
  labelBytes = static_cast<uint64_t>(
      program::labelBytes(*program.model, program.micro_batch_size));
}

std::string alignmentFault(const ProgramT &program, const Buffer &buffer) {
  if (buffer.offset() % program.buffer_alignment == 0)
    return "";
  return std::string("expected ") + nameOf(buffer.kind()) +
         " at a multiple of " + text(program.buffer_alignment) +
         " bytes, got offset " + text(buffer.offset());
}

std::string Sizes::faultOf(const Instruction &label, ValueKind kind,
                           uint32_t stage, const Buffer &buffer) {
  const uint64_t got = buffer.bytes();
  const Stage &sizes = program.stages[stage];
  auto parts = [&] { return pieces.partsOf(label.micro_batch()); };
  auto covered = [&] { return pieces.forwardOf(label.micro_batch()).count; };
  // If a product overflows, saturatedProduct returns the largest number, which
  // no buffer has as its size.
  uint64_t expected = 0;
  switch (kind) {
  case ValueKind::Tokens:
  case ValueKind::Labels: {
    uint64_t &unit = kind == ValueKind::Tokens ? tokenBytes : labelBytes;
    uint32_t count = covered();
    // The bytes of a micro-batch must be divisible by its number of parts,
    // which depends on its pipeline.
    if (got % count != 0 || got / count % parts() != 0)
      return std::string("expected bytes of ") + nameOf(kind) + " that its " +
             text(count) + " micro-batches divide, and the " + text(parts()) +
             " parts of one, got " + text(got);
    if (unit == UINT64_MAX)
      unit = got / count;
    expected = saturatedProduct(unit, count);
    break;
  }
  case ValueKind::Activation:
    expected = saturatedProduct(sizes.boundary_bytes(), covered());
    break;
  case ValueKind::Gradient:
    expected = sizes.boundary_bytes() / parts();
    break;
  case ValueKind::Stash:
  case ValueKind::WeightStash: {
    uint64_t whole = kind == ValueKind::Stash ? sizes.stash_bytes()
                                              : sizes.weight_stash_bytes();
    // Divide by the number of parts, and round up.
    expected = whole / parts() + (whole % parts() != 0);
    break;
  }
  case ValueKind::Weights:
    expected = sizes.weights_bytes();
    break;
  case ValueKind::WeightGradient:
    expected = gradientBytes(sizes);
    break;
  case ValueKind::OptimizerState:
    expected = sizes.optimizer_bytes();
    break;
  case ValueKind::Loss:
    expected = kLossBytes;
    break;
  case ValueKind::SquaredNorm:
    expected = kNormBytes;
    break;
  }
  if (got != expected)
    return "expected " + text(expected) + " bytes of " + nameOf(kind) +
           ", got " + text(got);
  // Check only the offsets of weight gradients: verifyLimits has checked the
  // offsets of all other kinds.
  return kind == ValueKind::WeightGradient ? alignmentFault(program, buffer)
                                           : "";
}

} // namespace chimera::program::verify
