//===- Chimera.h - The chimera dialect --------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one header that a user of the dialect includes: dialect, types,
// attributes, interfaces and ops. The .td files in this folder describe them.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_DIALECT_CHIMERA_H
#define CHIMERA_DIALECT_CHIMERA_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialect/Dialect.h.inc"

#include "dialect/Enums.h.inc"

#include "dialect/TypeInterfaces.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/Types.h.inc"

namespace chimera {

/// True for a stash or a weight stash. Both are opaque and take no arena
/// memory.
inline bool isStash(mlir::Type type) {
  return mlir::isa<StashType, WeightStashType>(type);
}

} // namespace chimera

#define GET_ATTRDEF_CLASSES
#include "dialect/Attributes.h.inc"

#include "dialect/Interfaces.h.inc"

#define GET_OP_CLASSES
#include "dialect/Ops.h.inc"

#endif // CHIMERA_DIALECT_CHIMERA_H
