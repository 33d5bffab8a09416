//===- Signature.h - Operands and results of opcodes ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A table of the operands and results that program.fbs gives each computation,
// for the verifier to compare with.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROOF_SIGNATURE_H
#define CHIMERA_RUNTIME_PROOF_SIGNATURE_H

#include "runtime/program/Program.h"

#include <string>

namespace chimera::program::verify {

inline constexpr uint8_t kNotInPlace = 0xff;

/// The operands and results of an opcode.
struct Signature {
  uint8_t operands = 0;
  uint8_t results = 0;
  ValueKind kinds[6] = {}; ///< of the operands, then of the results
  /// For each result the operand whose buffer it must take.
  uint8_t inPlace[2] = {kNotInPlace, kNotInPlace};
  /// Whether the first result may also have a buffer apart from all others.
  bool mayMove = false;

  void operand(ValueKind kind) { kinds[operands++] = kind; }
  void result(ValueKind kind, uint8_t operandInPlace = kNotInPlace) {
    inPlace[results] = operandInPlace;
    kinds[operands + results++] = kind;
  }
};

/// The signature of a computation on a stage that may be the first or the last
/// and, of a backward or a weight gradient, that may begin a sum; empty for
/// other opcodes. For a forward it has one loss and no stash: the
/// real numbers depend on what the forward covers.
Signature signatureOf(Opcode opcode, bool first, bool last, bool beginsSum);

/// Says which operands and results of a computation are not of the kinds in its
/// signature, or lie in buffers that they may not share; empty where all are
/// right. Requires buffers that exist.
std::string faultOf(const WorkerT &worker, const Instruction &instruction,
                    const Signature &signature, bool isLast);

} // namespace chimera::program::verify

#endif // CHIMERA_RUNTIME_PROOF_SIGNATURE_H
