//===- DescriptionInterface.h - Names for the parser ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_DESCRIBE_DESCRIPTIONINTERFACE_H
#define CHIMERA_PASSES_DESCRIBE_DESCRIPTIONINTERFACE_H

#include "mlir/IR/DialectRegistry.h"

namespace chimera {

/// Registers the implementation of dialect/DescriptionInterface.h. Parsers then
/// verify descriptions against the schemes of the registry and the models of
/// the program file. They can also offer the names of schemes and models for
/// completion.
void registerDescriptionInterface(mlir::DialectRegistry &registry);

} // namespace chimera

#endif // CHIMERA_PASSES_DESCRIBE_DESCRIPTIONINTERFACE_H
