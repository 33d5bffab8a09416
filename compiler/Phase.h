//===- Phase.h - The forms that a module goes through -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PHASE_H
#define CHIMERA_COMPILER_PHASE_H

#include "dialect/Chimera.h"

#include <span>

namespace chimera {

/// The forms that a module goes through, in their order.
enum class Phase {
  Described,
  Partitioned,
  Unrolled,
  Scheduled,
  Communicated,
  Synchronised,
  Projected,
  Allocated
};

/// All phases, in their order.
std::span<const Phase> phases();

/// "described", "partitioned", …
llvm::StringRef nameOf(Phase phase);

/// The phase of a pipeline, told from what it holds, whoever wrote it: each
/// phase adds something that no phase before has. Says nothing about whether
/// the rest is as that phase leaves it. A phase that had nothing to add (one
/// worker sends no messages) is not told from the one before, and running it
/// again adds nothing.
Phase phaseOf(PipelineOp pipeline);

} // namespace chimera

#endif // CHIMERA_COMPILER_PHASE_H
