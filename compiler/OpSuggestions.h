//===- OpSuggestions.h - The op that a misspelt name means ------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_OPSUGGESTIONS_H
#define CHIMERA_COMPILER_OPSUGGESTIONS_H

namespace mlir {
class DialectRegistry;
class MLIRContext;
} // namespace mlir

namespace chimera {

/// Makes MLIR's error about an unknown op end with ": did you mean
/// chimera.pipeline?", if an op of this dialect has a similar name. Other
/// handlers print the error. Requires that the dialect is loaded, and that the
/// handler that prints is registered before.
void addOpSuggestions(mlir::MLIRContext &context);
/// The same for a context that loads the dialect later.
void addOpSuggestions(mlir::DialectRegistry &registry);

} // namespace chimera

#endif // CHIMERA_COMPILER_OPSUGGESTIONS_H
