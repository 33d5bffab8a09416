//===- Grids.cpp - Schedules drawn as text --------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/compiler/schedule/Grids.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <stdexcept>

namespace chimera::schedule {

Cells cellsOf(const std::string &text) {
  std::istringstream lines(text);
  Cells cells;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::vector<std::string> row;
    for (std::string word; words >> word;)
      row.push_back(word);
    if (!row.empty())
      cells.push_back(row);
  }
  return cells;
}

std::ostream &operator<<(std::ostream &os, const DrawnAction &action) {
  return os << "P" << action.worker << " t=" << action.start << " "
            << nameOf(action.kind) << " " << action.microBatch << " chunk "
            << action.chunk;
}

static int64_t timeOf(const StageCost &cost, Kind kind) {
  switch (kind) {
  case Kind::Forward:
    return cost.forward;
  case Kind::Backward:
    return cost.backward;
  case Kind::InputGradient:
    return cost.inputGradient;
  case Kind::WeightGradient:
    return cost.weightGradient;
  case Kind::Recompute:
    return cost.recompute;
  }
  return 0;
}

std::vector<DrawnAction> readDense(const std::string &text, size_t width,
                                   StageCost cost, bool split) {
  std::vector<DrawnAction> actions;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    size_t at = line.find('P');
    if (at == std::string::npos)
      continue;
    size_t used = 0;
    int32_t worker = std::stoi(line.substr(at + 1), &used);
    std::string row = line.substr(at + 2 + used);
    row.resize((row.size() + width - 1) / width * width, ' ');
    for (size_t t = 0; t < row.size() / width;) {
      std::string cell = row.substr(t * width, width);
      auto c = static_cast<unsigned char>(cell[0]);
      if (c == '.' || c == ' ') {
        ++t;
        continue;
      }
      if (!std::isalnum(c))
        throw std::invalid_argument("no cell: " + cell);
      Kind kind = std::isdigit(c)   ? Kind::Forward
                  : std::isupper(c) ? Kind::WeightGradient
                  : split           ? Kind::InputGradient
                                    : Kind::Backward;
      int32_t microBatch = std::isdigit(c) ? c - '0' : std::tolower(c) - 'a';
      actions.push_back({worker, static_cast<int64_t>(t), kind, microBatch,
                         width > 1 && cell[1] == '\''});
      for (int64_t i = 0; i < timeOf(cost, kind); ++i, ++t)
        if (row.substr(t * width, width) != cell)
          throw std::invalid_argument("cut short: " + cell);
    }
  }
  std::sort(actions.begin(), actions.end());
  return actions;
}

std::vector<DrawnAction> drawnActions(const Schedule &schedule,
                                      const Timing &timing) {
  std::vector<DrawnAction> actions;
  for (size_t w = 0; w < schedule.workers.size(); ++w)
    for (size_t i = 0; i < schedule.workers[w].size(); ++i) {
      const Action &action = schedule.workers[w][i];
      actions.push_back({static_cast<int32_t>(w), timing.starts[w][i],
                         action.kind, action.microBatch});
    }
  return actions;
}

Schedule orderOf(const std::vector<DrawnAction> &actions, int32_t workers,
                 int32_t (*stageOf)(int32_t worker, int32_t chunk)) {
  Schedule schedule;
  schedule.workers.resize(workers);
  for (const DrawnAction &action : actions)
    schedule.workers[action.worker].push_back(
        {action.kind, 0, stageOf(action.worker, action.chunk),
         action.microBatch});
  return schedule;
}

} // namespace chimera::schedule
