//===- Source.h - Checks of a text before MLIR parses it --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tools check a module before they parse it, because MLIR's parser cannot
// handle every text:
// - it calls itself for each open bracket, so a few thousand open brackets
//   overflow its stack;
// - its time for a number grows with the square of the number of digits;
// - diagnostics print lines of the module, and a terminal executes the control
//   characters in them;
// - its error about a byte order mark does not name the mark.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SOURCE_H
#define CHIMERA_COMPILER_SOURCE_H

#include "mlir/Support/LLVM.h"

#include <string>

namespace chimera {

/// The reason why the text of a module cannot be parsed safely, such as
/// "LINE:COLUMN: error: expected at most 500 open brackets, got more". Empty if
/// it can be parsed. Does not check bytecode. Takes linear time.
std::string sourceError(llvm::StringRef text);

/// The reason why the text is no description, if another form is recognised:
/// Python, JSON, the orders of workers, or ops without "chimera.". It begins
/// with "LINE:COLUMN: error: " and says what to do. Empty for any other text.
std::string descriptionError(llvm::StringRef text);

/// True, after an error message, if sourceError or descriptionError refuses the
/// text of the file `path` ("-" for standard input).
bool reportBadDescription(llvm::StringRef path, llvm::StringRef text);

/// True if `path` is a device, which may have no end. Standard streams and
/// /dev/null are none.
bool isDevice(llvm::StringRef path);

/// True, after an error message, if one of `arguments` of a tool names a file
/// that cannot be parsed safely, or a device, which may have no end. Does not
/// check pipes, which can be read only once.
bool reportBadSources(llvm::ArrayRef<char *> arguments);

} // namespace chimera

#endif // CHIMERA_COMPILER_SOURCE_H
