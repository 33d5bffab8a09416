//===- OriginNotes.h - Diagnostics on ops that passes made ------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_ORIGINNOTES_H
#define CHIMERA_COMPILER_ORIGINNOTES_H

namespace mlir {
class DialectRegistry;
class MLIRContext;
} // namespace mlir

namespace chimera {

/// Adds a note to each diagnostic on an op that a pass made: the pipeline,
/// stage and micro-batch of the op, from the names in its location. It is for
/// tools that do not print the op itself. Call it after the handler that prints
/// diagnostics has been registered.
void addOriginNotes(mlir::MLIRContext &context);
/// Does the same for every context with this registry, as soon as the context
/// loads the dialect.
void addOriginNotes(mlir::DialectRegistry &registry);

} // namespace chimera

#endif // CHIMERA_COMPILER_ORIGINNOTES_H
