//===- MlirDriver.h - What all MLIR tools do --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_MLIRDRIVER_H
#define CHIMERA_TOOLS_MLIRDRIVER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/CommandLine.h"

#include <string>

namespace chimera {

/// Hides the options of LLVM and MLIR from --help; --help-hidden shows them.
/// There are hundreds, most of them options of code generators. Call this after
/// all options have been registered. The options of the category `ownCategory`
/// and --help itself stay visible. The list of passes stays visible too: it is
/// one option, registered under the name of each pass. `passName` is any of
/// these names; leave it empty if the tool has no list.
void hideLibraryOptions(llvm::cl::OptionCategory *ownCategory = nullptr,
                        llvm::StringRef passName = {});

/// Makes --version print the name of the tool and kVersion, and not the version
/// of LLVM.
void setVersion(llvm::StringRef tool);

/// Sets `input` to the only file of `files`, or to "-" (standard input) if
/// `files` is empty. Returns an error message if there are several files, else
/// an empty string. The message says what the one file must contain (`content`)
/// and which command joins several files (`command`). LLVM's own message says
/// neither.
std::string setSingleInput(llvm::ArrayRef<std::string> files,
                           std::string &input, llvm::StringRef content,
                           llvm::StringRef command);

/// Returns the arguments with --mlir-print-op-on-diagnostic=false, unless they
/// set this option already. By default, MLIR prints the op of each error, which
/// here is mostly a whole pipeline.
llvm::SmallVector<char *> withoutOpsInDiagnostics(int argc, char **argv);

/// Returns the arguments. If they ask for bytecode and set no version, adds
/// --emit-bytecode-version=4. Version 4 stores the properties of ops as
/// attributes, so tools without our dialect can read the bytecode. Later
/// versions store properties in a form that only the dialect can read.
llvm::SmallVector<char *>
withReadableBytecode(llvm::SmallVector<char *> arguments);

/// Prints an error and returns true if an output file of a driver (MlirOptMain
/// and others) is also an input file, or if two options name it. `arguments`
/// are those of the driver. Call this before the driver, because a driver
/// truncates the file of -o before it reads the input.
bool reportBadOutputs(llvm::ArrayRef<char *> arguments);

} // namespace chimera

#endif // CHIMERA_TOOLS_MLIRDRIVER_H
