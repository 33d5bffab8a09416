//===- TextTable.cpp - Columns of text ------------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/text/TextTable.h"

#include "compiler/schedule/text/Magnitude.h"

#include <algorithm>

namespace chimera::schedule {

std::string textTable(const std::vector<std::vector<std::string>> &rows,
                      size_t names) {
  std::vector<std::string> lines(rows.size());
  for (size_t column = 0; column < rows.front().size(); ++column) {
    size_t width = 0;
    for (const std::vector<std::string> &row : rows)
      width = std::max(width, characterCount(row[column]));
    for (size_t i = 0; i < rows.size(); ++i) {
      const std::string &cell = rows[i][column];
      std::string blanks(width - characterCount(cell), ' ');
      if (column > 0)
        lines[i] += "  ";
      lines[i] += column < names ? cell + blanks : blanks + cell;
    }
  }
  std::string text;
  for (std::string &line : lines) {
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

} // namespace chimera::schedule
