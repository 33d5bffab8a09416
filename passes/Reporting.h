//===- Reporting.h - What reports and timelines share -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the passes that show schedules share: options that take a word of a
// table, and a document to write.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_REPORTING_H
#define CHIMERA_PASSES_REPORTING_H

#include "dialect/Chimera.h"
#include "dialect/Spelling.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringExtras.h"

#include <span>
#include <string>

namespace chimera {

/// "PURPOSE: name (summary), name (summary)". Lives as long as the process, as
/// options refer to their help text.
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

/// Gives an option of a pass a help text that is made from a table.
struct Help {
  llvm::StringRef text;
  template <typename Option> void apply(Option &option) const {
    option.setDescription(text);
  }
};
/// The entry of `table` that an option names. Null, with a diagnostic that
/// lists what is possible, where there is none.
template <typename Entry>
const Entry *choose(mlir::ModuleOp module, llvm::StringRef pass,
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
  if (llvm::StringRef nearest = nearestOf(names, name); !nearest.empty())
    error << ": did you mean " << nearest << "?";
  return nullptr;
}

/// The module's pipelines. Fails, with a diagnostic of `pass`, if it has none.
mlir::FailureOr<llvm::SmallVector<PipelineOp>>
pipelinesOf(mlir::ModuleOp module, llvm::StringRef pass);

/// Writes `text` to the file `path`, - for standard output. Fails, with a
/// diagnostic that begins with `pass`, where that cannot be done; a file is
/// then as it was.
mlir::LogicalResult writeDocument(mlir::ModuleOp module, llvm::StringRef pass,
                                  llvm::StringRef path,
                                  const std::string &text);

} // namespace chimera

#endif // CHIMERA_PASSES_REPORTING_H
