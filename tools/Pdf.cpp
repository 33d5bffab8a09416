//===- Pdf.cpp - Pictures as PDF ------------------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/Pdf.h"

#include "runtime/program/Output.h"
#include "runtime/program/Printable.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

namespace chimera {

static constexpr llvm::StringRef kProgram = "rsvg-convert";

std::string pdfError() {
  if (llvm::sys::findProgramByName(kProgram))
    return {};
  return "expected the program rsvg-convert in the PATH, which converts "
         "pictures to PDF, got none: install the package librsvg2-bin (Debian, "
         "Ubuntu), librsvg2-tools (Fedora) or librsvg (others)";
}

/// The start of a file's text, without control characters.
static std::string startOf(llvm::StringRef path) {
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file)
    return {};
  llvm::StringRef text = (*file)->getBuffer().trim().take_front(500);
  return program::printable(std::string_view(text));
}

std::optional<std::string> svgToPdf(const std::string &svg,
                                    std::string &error) {
  error = pdfError();
  if (!error.empty())
    return std::nullopt;
  // Temporary files for the standard streams of rsvg-convert.
  llvm::SmallString<64> paths[3];
  auto remove = llvm::make_scope_exit([&] {
    for (llvm::StringRef path : paths)
      if (!path.empty())
        llvm::sys::fs::remove(path);
  });
  for (llvm::SmallString<64> &path : paths)
    if (std::error_code code =
            llvm::sys::fs::createTemporaryFile("chimera-picture", "", path)) {
      error = "cannot make a temporary file: " + code.message();
      return std::nullopt;
    }
  auto &[in, out, messages] = paths;
  if (!program::writeAtomically(in.str().str(), {std::as_bytes(std::span(svg))},
                                error))
    return std::nullopt;
  int status = llvm::sys::ExecuteAndWait(
      *llvm::sys::findProgramByName(kProgram), {kProgram, "--format", "pdf"},
      /*Env=*/std::nullopt, {in.str(), out.str(), messages.str()},
      /*SecondsToWait=*/0, /*MemoryLimit=*/0, &error);
  auto pdf = llvm::MemoryBuffer::getFile(out);
  if (status == 0 && pdf && (*pdf)->getBuffer().starts_with("%PDF-"))
    return (*pdf)->getBuffer().str();
  std::string reason = error.empty() ? startOf(messages) : error;
  error = "rsvg-convert failed to make a PDF, status " +
          std::to_string(status) + (reason.empty() ? "" : ": " + reason);
  return std::nullopt;
}

} // namespace chimera
