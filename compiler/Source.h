//===- Source.h - Texts that MLIR's parser can take -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR's parser calls itself for each open bracket, so a few thousand of them
// overflow its stack. Its time for a number grows with the square of the number
// of digits. Diagnostics print lines of the module, and a terminal obeys the
// control characters in them. A byte order mark is an error that does not name
// it. So the tools check a module before they parse it.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SOURCE_H
#define CHIMERA_COMPILER_SOURCE_H

#include "mlir/Support/LLVM.h"

#include <string>

namespace chimera {

/// Says where and why the text of a module cannot be parsed safely:
/// "LINE:COLUMN: error: expected at most 500 open brackets, got more". Empty if
/// it can. Does not look at bytecode. Takes linear time.
std::string faultOfSource(llvm::StringRef text);

/// True if `path` is a device, which may have no end. Standard streams and
/// /dev/null are none.
bool isDevice(llvm::StringRef path);

/// Whether an argument of a tool names a file that cannot be parsed safely, or
/// a device, which may have no end; prints why. Does not look at pipes, which
/// can be read only once.
bool refusesSources(llvm::ArrayRef<char *> arguments);

} // namespace chimera

#endif // CHIMERA_COMPILER_SOURCE_H
