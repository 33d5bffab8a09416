//===- Signature.h - Operands and results of opcodes ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kinds of the operands and results of each computation (Opcode in
// program.fbs). The verifier compares instructions with them.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROOF_SIGNATURE_H
#define CHIMERA_RUNTIME_PROOF_SIGNATURE_H

#include "runtime/program/Program.h"

#include <string>

namespace chimera::program::verify {

inline constexpr uint8_t kNotInPlace = 0xff;

/// The kinds of the operands and results of an opcode.
struct Signature {
  uint8_t operands = 0;
  uint8_t results = 0;
  ValueKind kinds[6] = {}; ///< of the operands, then of the results
  /// For each result, the index of the operand whose buffer it must use, or
  /// kNotInPlace.
  uint8_t inPlace[2] = {kNotInPlace, kNotInPlace};
  /// Whether the first result may also use a buffer that is not an operand.
  bool mayMove = false;

  void operand(ValueKind kind) { kinds[operands++] = kind; }
  void result(ValueKind kind, uint8_t operandInPlace = kNotInPlace) {
    inPlace[results] = operandInPlace;
    kinds[operands + results++] = kind;
  }
};

/// The signature of a computation. Empty for other opcodes. `first` and `last`
/// are true if its stage is the first or the last one. `beginsSum` is true if a
/// backward or weight gradient begins a gradient sum. `clips` is true if the
/// optimizer clips gradients by their norm. The signature of a
/// forward has one loss and no stash, although a forward can have several.
/// Their numbers depend on its micro-batches.
Signature signatureOf(Opcode opcode, bool first, bool last, bool beginsSum,
                      bool clips);

/// An error text if operands or results do not have the kinds of the signature,
/// or use a wrong buffer. Otherwise an empty text. Requires that all buffers
/// exist.
std::string faultOf(const WorkerT &worker, const Instruction &instruction,
                    const Signature &signature, bool isLast);

} // namespace chimera::program::verify

#endif // CHIMERA_RUNTIME_PROOF_SIGNATURE_H
