//===- Within.h - Numbers that an option takes ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_WITHIN_H
#define CHIMERA_TOOLS_WITHIN_H

#include <CLI/CLI.hpp>
#include <cmath>
#include <string>

namespace chimera {

/// As CLI::Range, which lets nan pass.
inline CLI::Validator within(double low, double high) {
  return CLI::Range(low, high) &
         CLI::Validator(
             [](std::string &text) {
               double value = 0;
               return CLI::detail::lexical_cast(text, value) &&
                              std::isnan(value)
                          ? "expected a number, got " + text
                          : std::string();
             },
             "");
}

} // namespace chimera

#endif // CHIMERA_TOOLS_WITHIN_H
