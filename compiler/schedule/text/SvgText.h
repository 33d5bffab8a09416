//===- SvgText.h - Text in SVG ----------------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_TEXT_SVGTEXT_H
#define CHIMERA_COMPILER_SCHEDULE_TEXT_SVGTEXT_H

#include <string>

namespace chimera::schedule {

/// `value` with at most two digits after the point.
std::string svgNumber(double value);

/// `text` with XML's special characters as references. Control characters,
/// which XML does not allow, become spaces.
std::string escapeXml(const std::string &text);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_TEXT_SVGTEXT_H
