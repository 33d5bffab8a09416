//===- Arguments.h - Defaults of MLIR tools ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_ARGUMENTS_H
#define CHIMERA_TOOLS_ARGUMENTS_H

#include "runtime/program/Output.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

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

/// Whether an option of passes reads the file, or writes it too.
inline bool namesFile(llvm::StringRef argument, llvm::StringRef file) {
  llvm::SmallVector<llvm::StringRef> options, files;
  llvm::SplitString(argument, options, " {}()");
  for (llvm::StringRef option : options) {
    auto [name, value] = option.rsplit('=');
    if (!name.ends_with("measured") && !name.ends_with("profiles") &&
        !name.ends_with("output"))
      continue;
    files.clear();
    llvm::SplitString(value, files, ",");
    for (llvm::StringRef named : files)
      if (program::areSameFile(named.str(), file.str()))
        return true;
  }
  return false;
}

/// Refuses, with a message, an output (-o) that is read too: MLIR's drivers
/// empty it before they have read it.
inline bool isOutputRead(llvm::ArrayRef<char *> arguments) {
  auto isOutputOption = [](llvm::StringRef argument) {
    return argument == "-o" || argument == "--o";
  };
  llvm::StringRef output, before;
  for (llvm::StringRef argument : arguments.drop_front()) {
    if (isOutputOption(before))
      output = argument;
    else if (argument.starts_with("-o=") || argument.starts_with("--o="))
      output = argument.split('=').second;
    before = argument;
  }
  before = "";
  for (llvm::StringRef argument : arguments.drop_front()) {
    const bool isInput = !argument.starts_with("-") &&
                         !isOutputOption(before) &&
                         program::areSameFile(argument.str(), output.str());
    if (isInput || namesFile(argument, output)) {
      llvm::errs() << llvm::sys::path::filename(arguments.front()) << ": "
                   << output << ": expected another file than "
                   << (isInput ? "the input" : "that of another option")
                   << "\n";
      return true;
    }
    before = argument;
  }
  return false;
}

} // namespace chimera

#endif // CHIMERA_TOOLS_ARGUMENTS_H
