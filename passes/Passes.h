//===- Passes.h - The phases, their verifiers, the reports ------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_PASSES_H
#define CHIMERA_PASSES_PASSES_H

#include "dialect/Chimera.h"
#include "passes/PassOptions.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace chimera {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

} // namespace chimera

#endif // CHIMERA_PASSES_PASSES_H
