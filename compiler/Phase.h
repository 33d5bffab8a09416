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

/// The phase of a pipeline. It follows from the ops in the pipeline: each phase
/// adds an op or an attribute that no earlier phase has. The rest of the
/// pipeline is not checked. Some phases have nothing to add to some pipelines:
/// for example, a single worker sends no messages. Then the result is the phase
/// before, and running the later phase again does no harm.
Phase phaseOf(PipelineOp pipeline);

} // namespace chimera

#endif // CHIMERA_COMPILER_PHASE_H
