//===- CommandLine.h - Validators of options and arguments ------*- C++ -*-===//
//-*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_COMMANDLINE_H
#define CHIMERA_TOOLS_COMMANDLINE_H

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

namespace chimera {

/// The number of letters to insert, delete or replace to turn one word into the
/// other (Levenshtein distance).
inline size_t editDistance(const std::string &left, const std::string &right) {
  // The distances from the first i letters of `left` to each prefix of `right`.
  std::vector<size_t> row(right.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < left.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < right.size(); ++j) {
      size_t above = row[j + 1];
      row[j + 1] =
          std::min({diagonal + (left[i] != right[j]), above + 1, row[j] + 1});
      diagonal = above;
    }
  }
  return row.back();
}

/// The word of `words` that is most similar to `name`. Empty if none is within
/// `name.size() / 3` edits (rounded down) of `name`.
inline std::string nearestTo(const std::string &name,
                             const std::vector<std::string> &words) {
  std::string nearest;
  size_t least = name.size() / 3 + 1;
  for (const std::string &word : words)
    if (const size_t distance = editDistance(name, word); distance < least) {
      least = distance;
      nearest = word;
    }
  return nearest;
}

/// An error message about the first unknown option of `app` or, if there is
/// none, about the first other unexpected argument. Empty if `app` recognised
/// all arguments. Requires that `app` allows extras. The message about an
/// option contains `answer(option)` or, if the answer is empty, the name of the
/// most similar option.
inline std::string unknownArgument(
    const CLI::App &app,
    const std::function<std::string(const std::string &)> &answer =
        [](const std::string &) { return std::string(); }) {
  std::vector<std::string> extras = app.remaining();
  // Stop at `--`, because later arguments are not options.
  auto mark = std::ranges::find(extras, "--");
  auto option = std::find_if(extras.begin(), mark, [](const std::string &text) {
    return text.starts_with('-');
  });
  if (option == mark) {
    if (mark != extras.end())
      extras.erase(mark);
    return extras.empty() ? "" : "unexpected argument '" + extras.front() + "'";
  }
  std::string name = option->substr(0, option->find('='));
  std::string says = answer(name);
  if (says.empty()) {
    std::vector<std::string> known;
    for (const CLI::Option *each : app.get_options())
      if (!each->get_positional())
        known.push_back("--" + each->get_single_name());
    if (const std::string nearest = nearestTo(name, known); !nearest.empty())
      says = "did you mean '" + nearest + "'?";
  }
  return "unknown option '" + name + "'" + (says.empty() ? "" : ": " + says);
}

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
/// with Option::transform, because it replaces 1e9 by 1000000000.
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
        // Doubles represent all whole numbers up to 2^53 exactly.
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

/// Accepts one of `words`. If the user gives another word, the error message
/// suggests a word: `meant` of the user's word if there is an entry, else the
/// most similar one of `words`.
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

/// Accepts names of `what`, "file" or "folder", except an empty name and "-".
/// An empty name is mostly an unset shell variable. "-" usually means a
/// standard stream, but here it would be the name of a file.
inline CLI::Validator fileName(const std::string &what = "file") {
  return CLI::Validator(
      [what](std::string &text) {
        return text.empty()  ? "expected a " + what + ", got an empty name"
               : text == "-" ? "expected a " + what +
                                   ", got -: write ./- if that is its name"
                             : "";
      },
      "");
}

} // namespace chimera

#endif // CHIMERA_TOOLS_COMMANDLINE_H
