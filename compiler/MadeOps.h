//===- MadeOps.h - Diagnostics on ops that nobody wrote ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_MADEOPS_H
#define CHIMERA_COMPILER_MADEOPS_H

namespace mlir {
class DialectRegistry;
class MLIRContext;
} // namespace mlir

namespace chimera {

/// Has diagnostics on ops that passes made say for which pipeline, stage and
/// micro-batch, in a note: the names of the op's location. For tools that do
/// not print the op itself. To be called after what prints diagnostics has been
/// registered.
void nameMadeOps(mlir::MLIRContext &context);
/// The same in every context with this registry, once it loads the dialect.
void nameMadeOps(mlir::DialectRegistry &registry);

} // namespace chimera

#endif // CHIMERA_COMPILER_MADEOPS_H
