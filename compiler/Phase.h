//===- Phase.h - The phases of a module -------------------------*- C++ -*-===//
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

/// The phases of a module, in their order.
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

/// The phase of a pipeline, which follows from the ops in it: each phase adds
/// an op or an attribute that no earlier phase has. The rest of the pipeline is
/// not checked. If a phase had nothing to add (a single worker sends no
/// messages), the result is the phase before, and running the later phase again
/// adds nothing.
Phase phaseOf(PipelineOp pipeline);

} // namespace chimera

#endif // CHIMERA_COMPILER_PHASE_H
