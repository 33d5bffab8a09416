//===- Source.h - Texts that MLIR's parser can take -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR's parser calls itself for each bracket that is open, so a few thousand
// of them end the process; it takes time by the square of a number's digits;
// and diagnostics show the lines of the text on a terminal, which obeys control
// characters. A module from elsewhere is looked at before it is parsed.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SOURCE_H
#define CHIMERA_COMPILER_SOURCE_H

#include "mlir/Support/LLVM.h"

#include <string>

namespace chimera {

/// What of a module's text cannot be parsed safely, empty if nothing:
/// "LINE:COLUMN: error: expected at most 500 open brackets, got more". Bytecode
/// is taken as it is. Takes linear time.
std::string faultOfSource(llvm::StringRef text);

/// Refuses, with a message, the files that the arguments of a tool name and
/// that cannot be parsed safely, and devices, which may have no end. What comes
/// through a pipe can be read only once and is left to the tool.
bool refusesSources(llvm::ArrayRef<char *> arguments);

} // namespace chimera

#endif // CHIMERA_COMPILER_SOURCE_H
