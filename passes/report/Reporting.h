//===- Reporting.h - Common parts of reports and timelines ------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Common functions of the passes that show schedules: for options whose values
// come from a table, and for writing a document.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_REPORT_REPORTING_H
#define CHIMERA_PASSES_REPORT_REPORTING_H

#include "dialect/Chimera.h"
#include "dialect/Spelling.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringExtras.h"

#include <span>
#include <string>

namespace chimera {

/// The help text of an option whose values are the entries of a table:
/// "PURPOSE: name (summary), name (summary)". All calls with one `Entry` type
/// return the text of the first call. Options refer to the text, so it lasts
/// until the program exits.
template <typename Entry>
llvm::StringRef helpOf(const char *purpose, std::span<const Entry> table) {
  static std::string text = [&] {
    std::string list;
    for (const Entry &entry : table)
      list += (list.empty() ? std::string(purpose) + ": " : ", ") + entry.name +
              " (" + entry.summary + ")";
    return list;
  }();
  return text;
}

/// A modifier of a pass option: sets the help text of the option to `text`.
struct HelpText {
  llvm::StringRef text;
  template <typename Option> void apply(Option &option) const {
    option.setDescription(text);
  }
};
/// The entry of `table` with the name `name`, which is the value of an option.
/// If there is no such entry, returns null and emits a diagnostic that lists
/// the names.
template <typename Entry>
const Entry *findEntry(mlir::ModuleOp module, llvm::StringRef pass,
                       llvm::StringRef option, std::span<const Entry> table,
                       llvm::StringRef name) {
  llvm::SmallVector<llvm::StringRef> names;
  for (const Entry &entry : table) {
    if (name == entry.name)
      return &entry;
    names.push_back(entry.name);
  }
  mlir::InFlightDiagnostic error =
      module.emitError() << pass << ": expected " << option << " to be one of "
                         << llvm::join(names, ", ") << ", got \"" << name
                         << "\"";
  if (llvm::StringRef nearest = mostSimilarWord(names, name); !nearest.empty())
    error << ": did you mean " << nearest << "?";
  return nullptr;
}

/// The module's pipelines. Fails with a diagnostic of `pass` if there are none.
mlir::FailureOr<llvm::SmallVector<PipelineOp>>
pipelinesOf(mlir::ModuleOp module, llvm::StringRef pass);

/// Writes `text` to the file `path`, or to standard output if `path` is "-". If
/// this fails, emits a diagnostic that begins with `pass`. An existing file is
/// then unchanged.
mlir::LogicalResult writeDocument(mlir::ModuleOp module, llvm::StringRef pass,
                                  llvm::StringRef path,
                                  const std::string &text);

} // namespace chimera

#endif // CHIMERA_PASSES_REPORT_REPORTING_H
