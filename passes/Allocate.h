//===- Allocate.h - A place for every value ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_ALLOCATE_H
#define CHIMERA_PASSES_ALLOCATE_H

#include "dialect/Chimera.h"

namespace chimera {

/// Gives the values of a projected worker their buffers and says what it holds
/// at most: `chimera-allocate` for one of them. Fails, with a diagnostic, as
/// that pass does.
mlir::LogicalResult allocate(WorkerOp worker);

} // namespace chimera

#endif // CHIMERA_PASSES_ALLOCATE_H
