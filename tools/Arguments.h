//===- Arguments.h - Defaults for the MLIR tools ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_ARGUMENTS_H
#define CHIMERA_TOOLS_ARGUMENTS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace chimera {

/// Sets `input` to the only file of `files`, or to "-" (standard input) if
/// `files` is empty. Returns an error message if there are several files, else
/// an empty string. The message says what the one file must contain (`content`)
/// and which command joins several files (`command`). LLVM's own message says
/// neither.
inline std::string setSingleInput(llvm::ArrayRef<std::string> files,
                                  std::string &input, llvm::StringRef content,
                                  llvm::StringRef command) {
  if (files.size() > 1)
    return "expected one file with " + content.str() + ", got " +
           std::to_string(files.size()) + ": put them into one file (" +
           command.str() + ")";
  input = files.empty() ? "-" : files.front();
  return {};
}

/// Returns the arguments with --mlir-print-op-on-diagnostic=false, unless they
/// set this option already. By default, MLIR prints the op of each error, which
/// here is mostly a whole pipeline.
inline llvm::SmallVector<char *> withoutOpsInDiagnostics(int argc,
                                                         char **argv) {
  static char off[] = "--mlir-print-op-on-diagnostic=false";
  llvm::SmallVector<char *> arguments(argv, argv + argc);
  for (llvm::StringRef argument : arguments)
    if (argument.ltrim('-').starts_with("mlir-print-op-on-diagnostic"))
      return arguments;
  arguments.insert(arguments.begin() + (argc > 0), off);
  return arguments;
}

/// Returns the arguments. If they ask for bytecode and set no version, adds
/// --emit-bytecode-version=4. Version 4 stores the properties of ops as
/// attributes, so tools without our dialect can read the bytecode. Later
/// versions store properties in a form that only the dialect can read.
inline llvm::SmallVector<char *>
withReadableBytecode(llvm::SmallVector<char *> arguments) {
  static char version[] = "--emit-bytecode-version=4";
  bool isAskedFor = false;
  for (llvm::StringRef argument : arguments) {
    llvm::StringRef name = argument.ltrim('-');
    if (name.starts_with("emit-bytecode-version"))
      return arguments;
    isAskedFor |= name == "emit-bytecode" || name == "emit-bytecode=true";
  }
  if (isAskedFor)
    arguments.insert(arguments.begin() + 1, version);
  return arguments;
}

} // namespace chimera

#endif // CHIMERA_TOOLS_ARGUMENTS_H
