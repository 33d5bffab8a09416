//===- Sizes.h - Bytes and places of buffers --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Internal to verifyInstructions, which looks at buffers one by one.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROOF_SIZES_H
#define CHIMERA_RUNTIME_PROOF_SIZES_H

#include "runtime/program/Pieces.h"

namespace chimera::program::verify {

/// Says what is wrong with the place of a buffer that is no piece of a
/// gradient; empty if nothing is.
std::string alignmentFault(const ProgramT &program, const Buffer &buffer);

/// The sizes that Verify.h asks of buffers. They follow from the table of
/// stages and, where there is one, from the model.
class Sizes {
public:
  /// The program's tables must be verified.
  Sizes(const ProgramT &program, const Pieces &pieces);

  /// What is wrong with the bytes and the place of a buffer of `kind` that
  /// holds what `label` names, empty if nothing is; `stage` is the stage whose
  /// boundary an activation or gradient crosses. Requires a verified label
  /// where the kind belongs to micro-batches. Without a model the first buffers
  /// of tokens and of labels that it is asked about say what all others have.
  std::string faultOf(const Instruction &label, ValueKind kind, uint32_t stage,
                      const Buffer &buffer);

private:
  const ProgramT &program;
  const Pieces &pieces;
  uint64_t tokenBytes = UINT64_MAX; ///< of a micro-batch, where known
  uint64_t labelBytes = UINT64_MAX;
};

} // namespace chimera::program::verify

#endif // CHIMERA_RUNTIME_PROOF_SIZES_H
