//===- Violation.h - A reason to refuse a program ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROOF_VIOLATION_H
#define CHIMERA_RUNTIME_PROOF_VIOLATION_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace chimera::program {

/// One reason to refuse a program. `message` is complete without context: it
/// names worker, instruction and source location if they apply.
struct Violation {
  enum class Rule {
    /// The program is not well formed: for example, an index is out of range or
    /// an operand has the wrong kind.
    Structure,
    /// A post of a message or a start of an all-reduce does not have exactly
    /// one later wait, or a wait has no post or start.
    Waits,
    /// The k-th send and the k-th receive of a channel do not agree, or the
    /// k-th starts of two members of a communicator do not agree, or there is
    /// no such send, receive or start.
    Matching,
    /// Workers wait for each other in a cycle.
    Deadlock,
    /// A buffer is read before it is written, written while it is being sent,
    /// or used while a receive fills it. Two live values overlap in memory. A
    /// stash is used twice, is never used, or is overwritten before its use.
    Buffers,
    /// An operand does not have the value that the label of its instruction
    /// names.
    Values,
    /// An action reads weights of a wrong version or a wrong stage. An update
    /// is out of order, or its gradient is not the sum that its label names.
    Weights,
    /// The peak of a worker's bytes differs from `peak_bytes`, or is not at
    /// `peak_instruction`.
    Memory,
    /// A worker needs more bytes than its `memory_cap`.
    Cap,
  };
  static constexpr size_t kRules = static_cast<size_t>(Rule::Cap) + 1;
  Rule rule;
  std::string message;
  /// The worker and the index of the wrong instruction. If several instructions
  /// do not agree, it is the first of them. UINT32_MAX if the violation does
  /// not belong to one worker or one instruction.
  uint32_t worker = UINT32_MAX;
  uint32_t instruction = UINT32_MAX;
};

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROOF_VIOLATION_H
