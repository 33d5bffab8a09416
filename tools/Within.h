//===- Within.h - Numbers that an option takes ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_WITHIN_H
#define CHIMERA_TOOLS_WITHIN_H

#include <CLI/CLI.hpp>
#include <charconv>
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

/// Whole numbers, of which 1e9 is one. Fit for Option::transform, which gives
/// the option its digits.
inline CLI::Validator wholeWithin(uint64_t low, uint64_t high) {
  std::string range =
      "[" + std::to_string(low) + " - " + std::to_string(high) + "]";
  return CLI::Validator(
      [=](std::string &text) {
        uint64_t whole = 0;
        double number = 0;
        auto isRead = [&](auto &value) {
          const char *end = text.data() + text.size();
          auto [stop, error] = std::from_chars(text.data(), end, value);
          return error == std::errc() && stop == end;
        };
        // Doubles are exact up to there.
        if (!isRead(whole) && isRead(number) && number >= 0 &&
            number <= double(uint64_t(1) << 53) &&
            number == std::floor(number)) {
          whole = static_cast<uint64_t>(number);
          text = std::to_string(whole);
        }
        return isRead(whole) && low <= whole && whole <= high
                   ? std::string()
                   : "expected a whole number in " + range + ", got " + text;
      },
      "in " + range);
}

} // namespace chimera

#endif // CHIMERA_TOOLS_WITHIN_H
