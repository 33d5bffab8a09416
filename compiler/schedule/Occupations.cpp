//===- Occupations.cpp - When messages occupy workers ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Occupations.h"

#include "compiler/schedule/Messages.h"

#include <algorithm>

namespace chimera::schedule {

/// What `message`, of `action` on `worker`, takes of that worker.
static int64_t timeOf(const Problem &problem, size_t worker,
                      const Action &action, const Message &message,
                      const MessageTime Link::*end) {
  const Link &link =
      problem.linkBetween(static_cast<int32_t>(worker), message.peer);
  return problem.transfer(link.*end, message.stage, action);
}

Occupations occupationsOf(const Problem &problem, const Schedule &schedule,
                          const Timing &timing) {
  ActionIds ids(problem);
  Occupations occupations(schedule.workers.size());
  for (size_t w = 0; w < schedule.workers.size(); ++w)
    for (size_t i = 0; i < schedule.workers[w].size(); ++i) {
      const Action &action = schedule.workers[w][i];
      auto index = static_cast<int32_t>(i);
      int64_t start = timing.starts[w][i];
      int64_t end = start + problem.cost(action);
      if (auto message = awaitedBy(problem, ids, action)) {
        int64_t time = timeOf(problem, w, action, *message, &Link::receive);
        if (time > 0)
          occupations[w].push_back(
              {{start - time, start}, index, message->peer, false});
      }
      if (auto message = sentBy(problem, ids, action)) {
        int64_t time = timeOf(problem, w, action, *message, &Link::send);
        if (time > 0)
          occupations[w].push_back(
              {{end, end + time}, index, message->peer, true});
      }
    }
  return occupations;
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

bool areAny(const Occupations &occupations) {
  return std::ranges::any_of(occupations,
                             [](const auto &row) { return !row.empty(); });
}

} // namespace chimera::schedule
