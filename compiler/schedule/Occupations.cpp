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

namespace {

/// Computes the start of the receive before an action, and the end of the send
/// after an action.
class Ends {
public:
  Ends(const Problem &problem, const Schedule &schedule, const Timing &timing)
      : problem(problem), schedule(schedule), timing(timing) {}

  int64_t receiveBegin(size_t worker, size_t index,
                       const Message &message) const {
    return timing.receiveBegins.empty()
               ? timing.starts[worker][index] -
                     timeOf(worker, index, message, &Link::receive)
               : timing.receiveBegins[worker][index];
  }
  int64_t sendEnd(size_t worker, size_t index, const Message &message) const {
    return timing.sendEnds.empty()
               ? timing.ends[worker][index] +
                     timeOf(worker, index, message, &Link::send)
               : timing.sendEnds[worker][index];
  }

private:
  int64_t timeOf(size_t worker, size_t index, const Message &message,
                 const MessageTime Link::*end) const {
    const Link &link =
        problem.linkBetween(static_cast<int32_t>(worker), message.peer);
    return problem.messageTime(link.*end, message.stage,
                               schedule.workers[worker][index]);
  }

  const Problem &problem;
  const Schedule &schedule;
  const Timing &timing;
};

} // namespace

Occupations messageOccupationsOf(const Problem &problem,
                                 const Schedule &schedule,
                                 const Timing &timing) {
  ActionIds ids(problem);
  const Ends ends(problem, schedule, timing);
  Occupations occupations(schedule.workers.size());
  for (size_t w = 0; w < schedule.workers.size(); ++w)
    for (size_t i = 0; i < schedule.workers[w].size(); ++i) {
      const Action &action = schedule.workers[w][i];
      auto add = [&](int64_t begin, int64_t end, int32_t peer, bool isSend) {
        if (begin < end)
          occupations[w].push_back(
              {{begin, end}, static_cast<int32_t>(i), peer, isSend});
      };
      if (auto message = awaitedBy(problem, ids, action))
        add(ends.receiveBegin(w, i, *message), timing.starts[w][i],
            message->peer, false);
      if (auto message = sentBy(problem, ids, action))
        add(timing.ends[w][i], ends.sendEnd(w, i, *message), message->peer,
            true);
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

bool hasOccupations(const Occupations &occupations) {
  return std::ranges::any_of(occupations,
                             [](const auto &row) { return !row.empty(); });
}

} // namespace chimera::schedule
