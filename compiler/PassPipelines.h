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

/// Adds the passes that lower a module from phase `from` to the later phase
/// `to`. If `checked`, a verifier runs after each phase. Messages are placed so
/// that no cycle of waits can exist under the message model `messages`.
void buildPipeline(
    mlir::OpPassManager &manager, Phase from, Phase to, bool checked,
    program::MessageModel messages = program::MessageModel::Rendezvous);

/// Adds the verifier of modules of `phase`. Phase::Described has no verifier:
/// the pass `partition` checks such a module itself.
void addBoundaryVerifier(mlir::OpPassManager &manager, Phase phase);

/// Registers all passes, and the pipelines `chimera-to-<phase>` (checked),
/// `chimera-place-messages`, `chimera-allocate` and `chimera-timeline`.
void registerPipelines();

} // namespace chimera

#endif // CHIMERA_COMPILER_PASSPIPELINES_H
