//===- Sizes.h - Sizes and offsets of buffers -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Internal to verifyInstructions, which checks buffers one by one.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROOF_SIZES_H
#define CHIMERA_RUNTIME_PROOF_SIZES_H

#include "runtime/program/BackwardPieces.h"

namespace chimera::program::verify {

/// The error in the offset of a buffer that is not a piece of a gradient. Empty
/// if the offset is right.
std::string alignmentFault(const ProgramT &program, const Buffer &buffer);

/// The required sizes of buffers (see Verify.h). They follow from the table of
/// stages and, if there is one, from the model.
class Sizes {
public:
  /// Requires verified tables of the program.
  Sizes(const ProgramT &program, const BackwardPieces &pieces);

  /// The error in the size or the offset of a buffer of `kind`, whose value
  /// `label` names. Empty if both are right. `stage` is the stage whose
  /// boundary an activation or gradient crosses. Requires a verified label if
  /// the kind belongs to micro-batches. If there is no model, the first buffer
  /// of tokens and the first buffer of labels fix the size of all later ones.
  std::string faultOf(const Instruction &label, ValueKind kind, uint32_t stage,
                      const Buffer &buffer);

private:
  const ProgramT &program;
  const BackwardPieces &pieces;
  uint64_t tokenBytes = UINT64_MAX; ///< of a micro-batch, if known
  uint64_t labelBytes = UINT64_MAX;
};

} // namespace chimera::program::verify

#endif // CHIMERA_RUNTIME_PROOF_SIZES_H
