//===- Within.h - Validators of option values -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_WITHIN_H
#define CHIMERA_TOOLS_WITHIN_H

#include "tools/Unknown.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace chimera {

/// Accepts numbers from `low` to `high`.
inline CLI::Validator within(double low, double high) {
  std::ostringstream range;
  range << "[" << low << " - " << high << "]";
  return CLI::Validator(
      [=, range = range.str()](std::string &text) {
        double value = 0;
        // Written so that NaN fails.
        return CLI::detail::lexical_cast(text, value) && value >= low &&
                       value <= high
                   ? std::string()
                   : "expected a number in " + range + ", got " + text;
      },
      "in " + range.str());
}

/// Accepts whole numbers from `low` to `high`, also in the form 1e9. Use it
/// with Option::transform, so that the option gets the digits of the number.
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
        // Doubles represent all whole numbers up to 2^53.
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

/// Accepts one of `words`. The error about another word suggests the word that
/// `meant` has for it or, if there is none, the most similar of `words`.
inline CLI::Validator
oneOf(const std::vector<std::string> &words,
      const std::map<std::string, std::string> &meant = {}) {
  std::string list = CLI::detail::join(words, ", ");
  return CLI::Validator(
      [=](std::string &text) {
        if (std::ranges::find(words, text) != words.end())
          return std::string();
        const auto other = meant.find(text);
        const std::string nearest =
            other != meant.end() ? other->second : nearestTo(text, words);
        return "expected one of " + list + ", got " + text +
               (nearest.empty() ? "" : ": did you mean " + nearest + "?");
      },
      "{" + CLI::detail::join(words, ",") + "}");
}

/// Accepts names of files, except an empty name, which is mostly an unset shell
/// variable, and "-", which would be a file of that name.
inline CLI::Validator fileName() {
  return CLI::Validator(
      [](std::string &text) {
        return text.empty() ? std::string("expected a file, got an empty name")
               : text == "-"
                   ? std::string("expected a file, got -: write ./- if that "
                                 "is its name")
                   : std::string();
      },
      "");
}

} // namespace chimera

#endif // CHIMERA_TOOLS_WITHIN_H
