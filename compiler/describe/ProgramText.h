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

/// The text of a module with one pipeline that has the name, stages, placement
/// and orders of a verified program. Stages have the program's costs and bytes.
/// The model and the messages are left out.
std::string describeProgram(const program::ProgramT &program);

} // namespace chimera

#endif // CHIMERA_COMPILER_DESCRIBE_PROGRAMTEXT_H
