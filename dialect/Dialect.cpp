//===- Dialect.cpp - The chimera dialect ----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Chimera.h"

#include "dialect/Dialect.cpp.inc"
#include "dialect/Interfaces.cpp.inc"

namespace chimera {

void ChimeraDialect::initialize() {
  registerTypes();
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "dialect/Ops.cpp.inc"
      >();
}

} // namespace chimera
