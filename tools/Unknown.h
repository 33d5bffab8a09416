//===- Unknown.h - Errors about unknown arguments ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_UNKNOWN_H
#define CHIMERA_TOOLS_UNKNOWN_H

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <numeric>
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

/// The one of `words` that is most similar to `name`. Empty if every word
/// differs in more than a third of the letters.
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

/// An error message about the first argument that `app` did not recognise.
/// Empty if it recognised all. Requires that `app` allows extras. For an
/// unknown option, the message contains its `answer` or, if that is empty, the
/// most similar option.
inline std::string unknownArgument(
    const CLI::App &app,
    const std::function<std::string(const std::string &)> &answer =
        [](const std::string &) { return std::string(); }) {
  std::vector<std::string> extras = app.remaining();
  // Arguments after `--` are not options.
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

} // namespace chimera

#endif // CHIMERA_TOOLS_UNKNOWN_H
