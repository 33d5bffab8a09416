//===- Sizes.h - Sizes and offsets of buffers -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The check of the sizes and offsets of buffers. verifyInstructions and
// verifyLimits use it.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROOF_SIZES_H
#define CHIMERA_RUNTIME_PROOF_SIZES_H

#include "runtime/program/BackwardPieces.h"

namespace chimera::program::verify {

/// An error text if the offset of `buffer` is not aligned, otherwise an empty
/// text. Requires a buffer that is not a piece of a gradient.
std::string alignmentFault(const ProgramT &program, const Buffer &buffer);

/// The required sizes of buffers (Verify.h). They follow from the table of
/// stages and from the model, if the program has one.
class Sizes {
public:
  /// Requires that verifyTables accepts the program.
  Sizes(const ProgramT &program, const BackwardPieces &pieces);

  /// An error text if the size of `buffer` is wrong, or the offset of a weight
  /// gradient. Otherwise an empty text. `kind` is the kind of its value. The
  /// label of the instruction `label` names the value. This label must be
  /// verified, if values of this kind belong to micro-batches. For an
  /// activation or a gradient, `stage` is the stage before the boundary that
  /// the value crosses. If there is no model, the first buffer of tokens
  /// determines the size of all later buffers of tokens. The same is true for
  /// labels.
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
