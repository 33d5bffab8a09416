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

std::optional<std::string> describeTorchFile(std::string_view path,
                                             std::string_view text,
                                             const schedule::torch::File &file,
                                             std::string &error) {
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
  // word keeps its column.
  std::string orders(text);
  std::ranges::replace(orders, ',', ' ');
  return describeOrderFile(path, orders, error);
}

} // namespace chimera
