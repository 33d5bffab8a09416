//===- TorchCsv.cpp - Schedule files of PyTorch ---------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/formats/TorchCsv.h"

#include <algorithm>
#include <charconv>

namespace chimera::schedule::torch {
namespace {

struct KindName {
  Kind kind;
  std::string_view name;
  bool hasMicroBatch = true;
};

/// A name comes before the names with which it begins.
constexpr KindName kNames[] = {
    {Kind::WaitReduceGradient, "WAIT_REDUCE_GRAD", false},
    {Kind::WaitSendForward, "WAIT_SEND_F"},
    {Kind::WaitSendBackward, "WAIT_SEND_B"},
    {Kind::ReduceGradient, "REDUCE_GRAD", false},
    {Kind::SendForward, "SEND_F"},
    {Kind::ReceiveForward, "RECV_F"},
    {Kind::SendBackward, "SEND_B"},
    {Kind::ReceiveBackward, "RECV_B"},
    {Kind::Unshard, "UNSHARD", false},
    {Kind::Reshard, "RESHARD", false},
    {Kind::Forward, "F"},
    {Kind::Backward, "B"},
    {Kind::InputGradient, "I"},
    {Kind::WeightGradient, "W"},
};
constexpr std::string_view kPair = "OVERLAP_F_B";
constexpr std::string_view kBlanks = " \t\r";
/// Stages and micro-batches must be below this number, as in order files.
constexpr int32_t kLimit = 65535;

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

/// Removes a number from the beginning of `text`.
bool takeNumber(std::string_view &text, int32_t &number) {
  const char *end = text.data() + text.size();
  if (text.empty() || text.front() < '0' || text.front() > '9')
    return false;
  const auto [stop, code] = std::from_chars(text.data(), end, number);
  if (code != std::errc() || number >= kLimit)
    return false;
  text.remove_prefix(static_cast<size_t>(stop - text.data()));
  return true;
}

std::optional<Action> parseAction(std::string_view text) {
  Action action{};
  if (!takeNumber(text, action.stage))
    return std::nullopt;
  const auto *name = std::ranges::find_if(kNames, [&](const KindName &each) {
    return text.starts_with(each.name);
  });
  if (name == std::end(kNames))
    return std::nullopt;
  text.remove_prefix(name->name.size());
  action.kind = name->kind;
  action.microBatch = -1;
  if (name->hasMicroBatch && !takeNumber(text, action.microBatch))
    return std::nullopt;
  return text.empty() ? std::optional(action) : std::nullopt;
}

/// The actions of a cell that is not blank. None if it is malformed.
std::vector<Action> parseCell(std::string_view text) {
  std::vector<Action> actions;
  auto add = [&](std::string_view word) {
    if (std::optional<Action> action = parseAction(trimmed(word)))
      actions.push_back(*action);
  };
  if (!text.starts_with('(')) {
    add(text);
    return actions;
  }
  const size_t middle = text.find(';'), end = text.find(')');
  if (middle > end || end == text.npos ||
      trimmed(text.substr(end + 1)) != kPair)
    return {};
  add(text.substr(1, middle - 1));
  add(text.substr(middle + 1, end - middle - 1));
  if (actions.size() != 2 || actions[0].kind != Kind::Forward ||
      actions[1].kind != Kind::Backward)
    return {};
  // A backward cannot run at once with its own forward.
  if (actions[0].stage == actions[1].stage &&
      actions[0].microBatch == actions[1].microBatch)
    return {};
  return actions;
}

/// Calls `visit(cell, offset)` for each cell of a line.
template <typename Visit>
void forEachCell(std::string_view line, const Visit &visit) {
  for (size_t begin = 0;;) {
    const size_t comma = line.find(',', begin);
    visit(line.substr(begin, comma - begin), begin);
    if (comma == line.npos)
      return;
    begin = comma + 1;
  }
}

} // namespace

bool File::isLowered() const {
  return std::ranges::any_of(ranks, [](const std::vector<Cell> &row) {
    return std::ranges::any_of(
        row, [](const Cell &cell) { return !computes(cell.actions[0].kind); });
  });
}

bool isTorchCsv(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (trimmed(line).empty())
      continue;
    if (line.find(',') == line.npos)
      return false;
    std::optional<bool> found; // by the first cell that is not blank
    forEachCell(line, [&](std::string_view cell, size_t) {
      cell = trimmed(cell);
      int32_t stage = 0;
      if (!found && !cell.empty())
        found = cell.starts_with('(') ||
                (takeNumber(cell, stage) &&
                 std::ranges::any_of(kNames, [&](const KindName &each) {
                   return cell.starts_with(each.name);
                 }));
    });
    if (found)
      return *found;
  }
  return false;
}

std::optional<ReadError> read(std::string_view text, File &file) {
  file = {};
  std::optional<ReadError> error;
  size_t rows = 0; // without blank lines at the end
  for (size_t number = 1; !text.empty() && !error; ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    std::vector<Cell> &row = file.ranks.emplace_back();
    if (!trimmed(line).empty())
      rows = number;
    uint32_t cells = 0;
    forEachCell(line, [&](std::string_view whole, size_t offset) {
      ++cells;
      const std::string_view word = trimmed(whole);
      if (word.empty() || error)
        return;
      const auto column =
          static_cast<uint32_t>(offset + (word.data() - whole.data()) + 1);
      std::vector<Action> actions = parseCell(word);
      if (actions.empty())
        error = {number, column,
                 "expected an action such as 0F3, 0B3, 0I3, 0W3, 0SEND_F3, "
                 "0UNSHARD or (0F7;7B3)OVERLAP_F_B, with numbers below " +
                     std::to_string(kLimit) + ", got " +
                     std::string(word.substr(0, 40))};
      else
        row.push_back({std::move(actions), cells, column});
    });
  }
  file.ranks.resize(rows);
  if (!error && file.ranks.empty())
    error = {1, 1, "expected a row of actions for each rank, got none"};
  return error;
}

std::string nameOf(const Action &action) {
  const auto *name = std::ranges::find(kNames, action.kind, &KindName::kind);
  return std::to_string(action.stage) + std::string(name->name) +
         (name->hasMicroBatch ? std::to_string(action.microBatch) : "");
}

std::string nameOf(const Cell &cell) {
  return cell.actions.size() == 1
             ? nameOf(cell.actions[0])
             : "(" + nameOf(cell.actions[0]) + ";" + nameOf(cell.actions[1]) +
                   ")" + std::string(kPair);
}

std::string nameOf(const File &file, const Place &place) {
  return "cell " + std::to_string(file.ranks[place.rank][place.cell].number) +
         " of rank " + std::to_string(place.rank);
}

} // namespace chimera::schedule::torch
