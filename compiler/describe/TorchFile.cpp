//===- TorchFile.cpp - A pipeline as a file of PyTorch --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/describe/TorchFile.h"

#include "compiler/describe/OrderFile.h"
#include "runtime/program/Printable.h"

#include <algorithm>

namespace chimera {

uint32_t DescribedTorchFile::columnOf(uint32_t line, uint32_t column) const {
  if (line == 0 || line > columns.size())
    return column;
  const auto &ofLine = columns[line - 1];
  const auto found = std::ranges::find(
      ofLine, column, [](const auto &both) { return both.first; });
  return found == ofLine.end() ? column : found->second;
}

/// The words of all ranks with idle slots in place of blank cells. Adds the
/// columns of the words to `columns`.
static std::string
wordsOf(const schedule::torch::File &file,
        std::vector<std::vector<std::pair<uint32_t, uint32_t>>> &columns) {
  std::string text;
  for (const std::vector<schedule::torch::Cell> &row : file.ranks) {
    std::string line;
    uint32_t next = 1; // number of the next cell
    columns.emplace_back();
    for (const schedule::torch::Cell &cell : row) {
      if (cell.number > next)
        line += "." + std::to_string(cell.number - next) + " ";
      columns.back().emplace_back(line.size() + 1, cell.column);
      line += nameOf(cell) + " ";
      next = cell.number + 1;
    }
    line.back() = '\n';
    text += line;
  }
  return text;
}

std::optional<DescribedTorchFile>
describeTorchFile(std::string_view path, std::string_view text,
                  const schedule::torch::File &file, std::string &error) {
  auto fail = [&](size_t rank, uint32_t column, const std::string &message) {
    error = program::printable(std::string(path) + ":" +
                               std::to_string(rank + 1) + ":" +
                               std::to_string(column) + ": error: " + message);
    return std::nullopt;
  };
  for (size_t rank = 0; rank < file.ranks.size(); ++rank) {
    const std::vector<schedule::torch::Cell> &row = file.ranks[rank];
    if (row.empty())
      return fail(rank, 1,
                  "expected actions of rank " + std::to_string(rank) +
                      ", got none");
    for (const schedule::torch::Cell &cell : row)
      if (cell.actions.size() > 1)
        return fail(rank, cell.column,
                    "expected one action in a cell, got " + nameOf(cell) +
                        ": a forward and a backward that run at once are not "
                        "supported yet, write " +
                        nameOf(cell.actions[0]) + "," +
                        nameOf(cell.actions[1]));
  }
  // With blanks in place of commas, each row is the line of a worker, and each
  // word keeps its column. So errors have the columns of the file.
  std::string orders(text);
  std::ranges::replace(orders, ',', ' ');
  if (!describeOrderFile(path, orders, error))
    return std::nullopt;
  DescribedTorchFile result;
  std::optional<std::string> described =
      describeOrderFile(path, wordsOf(file, result.columns), error);
  if (!described)
    return std::nullopt;
  result.text = std::move(*described);
  return result;
}

} // namespace chimera
