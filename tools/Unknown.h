//===- Unknown.h - Arguments that a tool does not know ----------*- C++ -*-===//
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

/// How many letters have to be put in, taken out or exchanged to make one word
/// the other.
inline size_t editDistance(const std::string &left, const std::string &right) {
  // Of the part of `left` so far, to each beginning of `right`.
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

/// Which of `words` is most like `name`; empty if none is alike: if more than a
/// third of the letters are others.
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

/// What to say of the first argument that `app`, which allows extras, has not
/// taken; empty if it has taken all. Gives the `answer` to an unknown option
/// or, if that is empty, names the option that is most like it.
inline std::string unknownArgument(
    const CLI::App &app,
    const std::function<std::string(const std::string &)> &answer =
        [](const std::string &) { return std::string(); }) {
  std::vector<std::string> extras = app.remaining();
  // After `--` nothing is an option.
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
