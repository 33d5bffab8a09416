//===- ProgramText.h - The schedule of a program file -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_DESCRIBE_PROGRAMTEXT_H
#define CHIMERA_COMPILER_DESCRIBE_PROGRAMTEXT_H

#include "runtime/program/Program.h"

#include <string>

namespace chimera {

/// The text of a module with one pipeline. The pipeline has the name, stages,
/// placement and orders of `program`, and the program's costs and bytes of each
/// stage. It has no model and no messages. Requires that `program` is verified.
std::string describeProgram(const program::ProgramT &program);

} // namespace chimera

#endif // CHIMERA_COMPILER_DESCRIBE_PROGRAMTEXT_H
