//===- Timing.cpp - When the actions of a schedule run --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/simulate/Timing.h"

#include <algorithm>

namespace chimera::schedule {

int64_t Timing::maxLoad() const {
  return busy.empty() ? 0 : *std::max_element(busy.begin(), busy.end());
}

int64_t Timing::flushBubble() const { return makespan - maxLoad(); }

int64_t Timing::internalBubble() const {
  return spans.empty()
             ? 0
             : *std::max_element(spans.begin(), spans.end()) - maxLoad();
}

double Timing::bubbleRatio() const {
  int64_t total = 0;
  for (int64_t time : idle)
    total += time;
  if (makespan == 0 || idle.empty())
    return 0;
  return static_cast<double>(total) /
         (static_cast<double>(makespan) * static_cast<double>(idle.size()));
}

std::vector<int64_t> totalsOf(const Occupations &occupations) {
  std::vector<int64_t> totals;
  for (const std::vector<Occupation> &row : occupations) {
    int64_t &total = totals.emplace_back();
    for (const Occupation &occupation : row)
      total += occupation.end - occupation.begin;
  }
  return totals;
}

std::vector<ActionRef> inOrderOfStarts(const Timing &timing) {
  std::vector<ActionRef> order;
  for (size_t w = 0; w < timing.starts.size(); ++w)
    for (size_t i = 0; i < timing.starts[w].size(); ++i)
      order.push_back({static_cast<int32_t>(w), static_cast<int32_t>(i)});
  auto startOf = [&](const ActionRef &ref) {
    return timing.starts[ref.worker][ref.index];
  };
  // The sort is stable: actions with equal starts stay sorted by worker, then
  // by index.
  std::ranges::stable_sort(order, {}, startOf);
  return order;
}

} // namespace chimera::schedule
