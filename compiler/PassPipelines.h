//===- PassPipelines.h - The path from description to program ---*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PASSPIPELINES_H
#define CHIMERA_COMPILER_PASSPIPELINES_H

#include "compiler/Phase.h"
#include "runtime/program/Program.h"

#include "mlir/Pass/PassManager.h"

namespace chimera {

/// Adds the passes that take a module from one phase to a later one. With
/// `checked`, the verifier of each boundary runs. Messages are placed so that
/// they cannot wait for each other in a cycle under `messages`.
void buildPipeline(
    mlir::OpPassManager &manager, Phase from, Phase to, bool checked,
    program::MessageModel messages = program::MessageModel::Rendezvous);

/// Adds the pass that verifies what a module of `phase` has to be: of any but a
/// described one, which partition checks.
void addBoundaryVerifier(mlir::OpPassManager &manager, Phase phase);

/// Registers all passes, and the pipelines `chimera-to-<phase>` (checked),
/// `chimera-place-messages`, `chimera-allocate` and `chimera-timeline`.
void registerPipelines();

} // namespace chimera

#endif // CHIMERA_COMPILER_PASSPIPELINES_H
