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

/// The reason why svgToPdf cannot convert: its program is missing. Empty if it
/// can.
std::string pdfError();

/// Converts an SVG document with rsvg-convert, a program of librsvg. Returns
/// none, with the reason in `error`, if the program is missing or fails, or if
/// a temporary file cannot be written.
std::optional<std::string> svgToPdf(const std::string &svg, std::string &error);

} // namespace chimera

#endif // CHIMERA_TOOLS_PDF_H
