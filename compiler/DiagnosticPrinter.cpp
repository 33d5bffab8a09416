//===- DiagnosticPrinter.cpp - How tools print diagnostics ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/DiagnosticPrinter.h"

#include "compiler/OpSuggestions.h"
#include "compiler/OriginNotes.h"

#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace chimera {

static bool hasPlace(Location location) {
  auto place = location->findInstanceOf<FileLineColLoc>();
  return place && place.getLine() > 0;
}

DiagnosticPrinter::DiagnosticPrinter(MLIRContext &context, StringRef tool,
                                     StringRef input)
    : tool(tool), input(input == "-" ? "<stdin>" : input),
      printer(sources, &context),
      withoutPlace(&context, [this](Diagnostic &diagnostic) {
        return printWithoutPlace(diagnostic);
      }) {
  addOriginNotes(context);
  addOpSuggestions(context);
}

LogicalResult DiagnosticPrinter::printWithoutPlace(Diagnostic &diagnostic) {
  if (hasPlace(diagnostic.getLocation()))
    return failure();
  std::string message = diagnostic.str();
  // An error in an option begins with the name of the tool or the pass.
  if (!StringRef(message).starts_with("chimera-"))
    llvm::errs() << tool << ": " << input << ": ";
  if (diagnostic.getSeverity() == DiagnosticSeverity::Warning)
    llvm::errs() << "warning: ";
  llvm::errs() << message << "\n";
  for (const Diagnostic &note : diagnostic.getNotes())
    if (hasPlace(note.getLocation()))
      printer.emitDiagnostic(note.getLocation(), note.str(),
                             note.getSeverity());
    else
      llvm::errs() << "note: " << note.str() << "\n";
  return success();
}

} // namespace chimera
