//===- DiagnosticPrinter.h - How tools print diagnostics --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_DIAGNOSTICPRINTER_H
#define CHIMERA_COMPILER_DIAGNOSTICPRINTER_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/SourceMgr.h"

#include <string>

namespace chimera {

/// Prints the diagnostics of a context to standard error, for a tool that reads
/// one module. It prints them as MLIR's own tools do, with the source line and
/// a caret, but
/// - a diagnostic without a place in a file, such as an error in an option, has
///   the names of the tool and its input instead of a line and a column of 0;
/// - a source line of more than 120 characters is cut around the caret, and "…"
///   stands for the characters that were left out;
/// - a diagnostic on an op that a pass made has a note (OriginNotes.h), and an
///   unknown op a suggestion (OpSuggestions.h).
///
/// Requires that the dialect is loaded and that the context outlives it.
class DiagnosticPrinter {
public:
  /// `input` is the name of the file as the user wrote it.
  DiagnosticPrinter(mlir::MLIRContext &context, llvm::StringRef tool,
                    llvm::StringRef input);

  /// The texts that diagnostics show, to which the tool adds its module.
  llvm::SourceMgr sources;

private:
  /// Prints `diagnostic` if it has no place. Otherwise fails, so that `printer`
  /// prints it.
  mlir::LogicalResult printWithoutPlace(mlir::Diagnostic &diagnostic);

  const std::string tool, input;
  // The order of these members matters: MLIR first calls the handler that was
  // registered last, `withoutPlace`.
  mlir::SourceMgrDiagnosticHandler printer;
  mlir::ScopedDiagnosticHandler withoutPlace;
};

} // namespace chimera

#endif // CHIMERA_COMPILER_DIAGNOSTICPRINTER_H
