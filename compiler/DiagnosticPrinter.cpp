//===- DiagnosticPrinter.cpp - How tools print diagnostics ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/DiagnosticPrinter.h"

#include "compiler/OpSuggestions.h"
#include "compiler/OriginNotes.h"
#include "compiler/schedule/text/Magnitude.h"

#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace chimera {

/// The most characters of a source line that are printed.
static constexpr size_t kWidest = 120;

/// The bytes at which the characters of `text` begin, and its size.
static SmallVector<size_t> characterStarts(StringRef text) {
  SmallVector<size_t> starts = {0};
  for (size_t i = 1; i < text.size(); ++i)
    // In UTF-8, such a byte continues a character.
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80)
      starts.push_back(i);
  starts.push_back(text.size());
  return starts;
}

/// `line` around the byte `column` (from 0), and below it a caret under the
/// character at this byte. Requires that the line has more than kWidest
/// characters. Tabs become blanks, so that the caret is at the right place.
static std::string excerptOf(StringRef line, size_t column) {
  std::string text = line.str();
  std::replace(text.begin(), text.end(), '\t', ' ');
  SmallVector<size_t> starts = characterStarts(text);
  const size_t count = starts.size() - 1;
  // The character that the byte belongs to: the last one that does not begin
  // after it.
  const size_t caret = llvm::upper_bound(starts, column) - starts.begin() - 1;
  const size_t first =
      std::min(std::max(caret, kWidest / 2) - kWidest / 2, count - kWidest);
  const size_t end = first + kWidest;
  // Each "…" replaces a character, so the others stay where they are.
  const bool isCutBefore = first > 0, isCutAfter = end < count;
  const size_t begin = starts[first + (isCutBefore ? 1 : 0)];
  return (isCutBefore ? "…" : "") +
         text.substr(begin, starts[end - (isCutAfter ? 1 : 0)] - begin) +
         (isCutAfter ? "…" : "") + "\n" + std::string(caret - first, ' ') +
         "^\n";
}

/// Prints as LLVM does, but with an excerpt of a wide line.
static void print(const llvm::SMDiagnostic &diagnostic, void *) {
  StringRef line = diagnostic.getLineContents();
  if (schedule::characterCount(line) <= kWidest ||
      diagnostic.getColumnNo() < 0) {
    diagnostic.print(nullptr, llvm::errs());
    return;
  }
  std::string place =
      (diagnostic.getFilename() + ":" + llvm::Twine(diagnostic.getLineNo()) +
       ":" + llvm::Twine(diagnostic.getColumnNo() + 1))
          .str();
  llvm::SMDiagnostic(place, diagnostic.getKind(), diagnostic.getMessage())
      .print(nullptr, llvm::errs());
  llvm::errs() << excerptOf(line, diagnostic.getColumnNo());
}

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
  sources.setDiagHandler(print);
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
