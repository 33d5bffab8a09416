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

/// What to say of the first argument that `app`, which allows extras, has not
/// taken; empty if it has taken all. Names the option that is most like it.
inline std::string unknownArgument(const CLI::App &app) {
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
  std::string nearest;
  // Beyond a third of the letters they are not alike.
  size_t least = name.size() / 3 + 1;
  for (const CLI::Option *known : app.get_options())
    if (std::string candidate = "--" + known->get_single_name();
        !known->get_positional() && editDistance(name, candidate) < least) {
      least = editDistance(name, candidate);
      nearest = candidate;
    }
  return "unknown option '" + name + "'" +
         (nearest.empty() ? "" : ": did you mean '" + nearest + "'?");
}

} // namespace chimera

#endif // CHIMERA_TOOLS_UNKNOWN_H
