//===- Timeline.cpp - A schedule as a grid of text ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Timeline.h"

#include <algorithm>
#include <cstdio>

namespace chimera::schedule {

namespace {

std::string label(const Problem &problem, const Action &action) {
  const char *letters = problem.pipelines[action.pipeline].up ? "fbiw" : "FBIW";
  return letters[static_cast<int>(action.kind)] +
         std::to_string(action.microBatch);
}

void appendRow(std::string &text, const std::string &head,
               const std::vector<std::string> &cells, size_t width) {
  std::string row = head;
  row.resize(std::max(row.size() + 1, size_t{5}), ' ');
  for (const std::string &cell : cells) {
    row += cell;
    row.append(width - cell.size(), ' ');
  }
  row.erase(row.find_last_not_of(' ') + 1);
  text += row + "\n";
}

template <typename T> std::string join(const std::vector<T> &values) {
  std::string text;
  for (const T &value : values)
    text += (text.empty() ? "" : " ") + std::to_string(value);
  return text;
}

} // namespace

std::string renderGrid(const Problem &problem, const Schedule &schedule,
                       const Timing &timing, bool slots) {
  std::vector<std::vector<std::string>> rows;
  size_t width = std::to_string(timing.makespan - 1).size();
  for (size_t w = 0; w < schedule.workers.size(); ++w) {
    std::vector<std::string> &row = rows.emplace_back(timing.makespan, ".");
    for (size_t i = 0; i < schedule.workers[w].size(); ++i) {
      const Action &action = schedule.workers[w][i];
      int64_t start = timing.starts[w][i];
      int64_t cost = slots ? 1 : problem.cost(action.kind, action.stage);
      row[start] = label(problem, action);
      width = std::max(width, row[start].size());
      for (int64_t t = start + 1; t < start + cost; ++t)
        row[t] = "=";
    }
  }
  std::vector<std::string> head;
  for (int64_t t = 0; t < timing.makespan; ++t)
    head.push_back(std::to_string(t));
  std::string text;
  appendRow(text, slots ? "slot" : "t", head, width + 1);
  for (size_t w = 0; w < rows.size(); ++w)
    appendRow(text, "P" + std::to_string(w), rows[w], width + 1);
  return text;
}

std::string renderSummary(const Problem &problem, const Timing &timing,
                          bool slots) {
  std::string times = "one slot each";
  if (!slots) {
    const StageCost &cost = problem.stages.front();
    times = "forward " + std::to_string(cost.forward);
    if (problem.splitBackward)
      times += ", input gradient " + std::to_string(cost.inputGradient) +
               ", weight gradient " + std::to_string(cost.weightGradient);
    else
      times += ", backward " + std::to_string(cost.backward);
    times += ", p2p " + std::to_string(problem.link.alpha);
    if (problem.link.beta > 0)
      times += " and " + std::to_string(problem.link.beta) + " for each " +
               std::to_string(problem.link.betaBytes) + " bytes";
  }
  char ratio[32];
  std::snprintf(ratio, sizeof ratio, "%.1f %%", 100 * timing.bubbleRatio());
  return "makespan " + std::to_string(timing.makespan) + " (" + times +
         ")\nbubble " + ratio +
         " of the makespan; idle per worker: " + join(timing.idle) +
         "\npeak activations per worker: " + join(timing.peakActivations) +
         "\n";
}

} // namespace chimera::schedule
