//===- Arguments.h - Defaults of MLIR tools ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_ARGUMENTS_H
#define CHIMERA_TOOLS_ARGUMENTS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace chimera {

/// The arguments with MLIR's printing of ops on errors turned off, unless they
/// ask for it: the op of an error is mostly a pipeline, which prints whole.
inline llvm::SmallVector<char *> quietDiagnostics(int argc, char **argv) {
  static char off[] = "--mlir-print-op-on-diagnostic=false";
  llvm::SmallVector<char *> arguments(argv, argv + argc);
  for (llvm::StringRef argument : arguments)
    if (argument.ltrim('-').starts_with("mlir-print-op-on-diagnostic"))
      return arguments;
  arguments.insert(arguments.begin() + (argc > 0), off);
  return arguments;
}

} // namespace chimera

#endif // CHIMERA_TOOLS_ARGUMENTS_H
