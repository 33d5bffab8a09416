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
#include <map>
#include <tuple>

namespace chimera {

uint32_t TorchOrders::columnOf(uint32_t line, uint32_t column) const {
  if (line == 0 || line > columns.size())
    return column;
  const auto &ofLine = columns[line - 1];
  const auto found = std::ranges::find(
      ofLine, column, [](const auto &both) { return both.first; });
  return found == ofLine.end() ? column : found->second;
}

/// Whether each action is in a later column than the action of the previous or
/// the next stage on which it depends.
static bool hasColumnsInOrder(const schedule::torch::File &file) {
  using schedule::torch::Kind;
  // By direction, stage and micro-batch. A backward and an input gradient begin
  // the backward of a stage.
  std::map<std::tuple<bool, int32_t, int32_t>, uint32_t> numbers;
  for (const auto &row : file.ranks)
    for (const schedule::torch::Cell &cell : row)
      if (const auto &[kind, stage, batch] = cell.actions[0];
          kind != Kind::WeightGradient)
        numbers[{kind == Kind::Forward, stage, batch}] = cell.number;
  for (const auto &[action, number] : numbers) {
    const auto &[isForward, stage, batch] = action;
    const auto before =
        numbers.find({isForward, stage + (isForward ? -1 : 1), batch});
    if (before != numbers.end() && before->second >= number)
      return false;
  }
  return true;
}

/// Whether a cell of a row has a blank cell before it.
static bool hasBlanks(const schedule::torch::File &file) {
  return std::ranges::any_of(file.ranks, [](const auto &row) {
    return row.back().number != row.size();
  });
}

/// Whether a cell has a forward and a backward that run at once.
static bool hasPairs(const schedule::torch::File &file) {
  return std::ranges::any_of(file.ranks, [](const auto &row) {
    return std::ranges::any_of(
        row, [](const auto &cell) { return cell.actions.size() > 1; });
  });
}

/// `text`, the text of `file`, as the orders of workers: with blanks in place
/// of commas, and 0F7+7B3 and blanks in place of (0F7;7B3)OVERLAP_F_B. Each
/// action is at its place in the file, if there are no blanks inside a pair.
static std::string ordersOf(std::string_view text,
                            const schedule::torch::File &file) {
  std::string orders(text);
  size_t begin = 0; // of the line
  for (const std::vector<schedule::torch::Cell> &row : file.ranks) {
    const size_t end = std::min(text.find_first_of("\r\n", begin), text.size());
    for (const schedule::torch::Cell &cell : row)
      if (cell.actions.size() > 1) {
        const std::string word =
            " " + nameOf(cell.actions[0]) + "+" + nameOf(cell.actions[1]);
        const size_t at = begin + cell.column - 1;
        const size_t size = std::min(text.find(',', at), end) - at;
        orders.replace(at, size, word + std::string(size - word.size(), ' '));
      }
    begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
  }
  std::ranges::replace(orders, ',', ' ');
  return orders;
}

/// The words of all ranks with idle slots in place of blank cells. Adds the
/// columns of the words to `columns`. Requires that there are no pairs.
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

std::optional<TorchOrders> torchOrders(std::string_view path,
                                       std::string_view text,
                                       const schedule::torch::File &file,
                                       std::string &error) {
  for (size_t rank = 0; rank < file.ranks.size(); ++rank)
    if (file.ranks[rank].empty()) {
      error = program::printable(std::string(path) + ":" +
                                 std::to_string(rank + 1) +
                                 ":1: error: expected actions of rank " +
                                 std::to_string(rank) + ", got none");
      return std::nullopt;
    }
  // Each row is the line of a worker, and each word keeps its column. So errors
  // have the columns of the file.
  TorchOrders orders{ordersOf(text, file), {}, {}};
  if (!readOrderFile(path, orders.text, error, text))
    return std::nullopt;
  if (!hasBlanks(file))
    return orders;
  if (hasPairs(file))
    orders.whyNoBlanks = "a pair, which is one cell, has two slots";
  else if (!hasColumnsInOrder(file))
    orders.whyNoBlanks = "with them, an action would depend on one that is in "
                         "no earlier column";
  else
    orders.text = wordsOf(file, orders.columns);
  return orders;
}

} // namespace chimera
