//===- Markup.h - Text inside of SVG ----------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_MARKUP_H
#define CHIMERA_COMPILER_SCHEDULE_MARKUP_H

#include <string>

namespace chimera::schedule {

/// `value` with at most two digits behind the point.
std::string number(double value);

/// `text` with what XML reserves written as references, and blanks for control
/// characters, which XML does not have.
std::string escape(const std::string &text);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_MARKUP_H
