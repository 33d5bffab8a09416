//===- Pipelines.h - The path from description to program -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PIPELINES_H
#define CHIMERA_COMPILER_PIPELINES_H

#include "mlir/Pass/PassManager.h"

namespace chimera {

/// The forms that a module goes through.
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

/// Adds the passes that take a module from one phase to a later one. With
/// `checked`, each boundary that has a verifier pass runs it. `onePerPair` is
/// for transports with one communicator for each pair of workers.
void buildPipeline(mlir::OpPassManager &manager, Phase from, Phase to,
                   bool checked, bool onePerPair = false);

/// Registers all passes, and the pipelines `chimera-to-<phase>` (checked) and
/// `chimera-timeline`.
void registerPipelines();

} // namespace chimera

#endif // CHIMERA_COMPILER_PIPELINES_H
