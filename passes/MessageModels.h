//===- MessageModels.h - An option that names a message model ---*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_MESSAGEMODELS_H
#define CHIMERA_PASSES_MESSAGEMODELS_H

#include "runtime/program/Program.h"

#include "llvm/Support/CommandLine.h"

namespace chimera {

/// The values of an option that names a message model. A message model says
/// what sends and receives wait for. Passes place messages for one model, and
/// programs are proven under one.
llvm::cl::ValuesClass messageModels();

} // namespace chimera

#endif // CHIMERA_PASSES_MESSAGEMODELS_H
