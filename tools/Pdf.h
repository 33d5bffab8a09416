//===- Pdf.h - Pictures as PDF ----------------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_PDF_H
#define CHIMERA_TOOLS_PDF_H

#include <optional>
#include <string>

namespace chimera {

/// An error message if rsvg-convert is missing, the program that svgToPdf runs.
/// Else empty.
std::string pdfError();

/// Converts an SVG document to PDF with rsvg-convert, a program of librsvg.
/// Returns none, and sets `error` to the reason, if the program is missing or
/// fails, or if a temporary file cannot be written.
std::optional<std::string> svgToPdf(const std::string &svg, std::string &error);

} // namespace chimera

#endif // CHIMERA_TOOLS_PDF_H
