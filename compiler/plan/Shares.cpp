//===- Shares.cpp - Where the time of a step goes -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/plan/Shares.h"

#include <algorithm>

namespace chimera::plan {

namespace {

/// Time of all workers in a step.
struct Busy {
  double forwardsAgain = 0; ///< recomputes, of all workers
  double all = 0;           ///< of all workers
  double most = 0;          ///< of the busiest
};

Busy busyOf(const schedule::Problem &problem, const schedule::Schedule &order) {
  Busy busy;
  for (const std::vector<schedule::Action> &worker : order.workers) {
    double time = 0;
    for (const schedule::Action &action : worker) {
      auto cost = static_cast<double>(problem.cost(action));
      time += cost;
      if (action.kind == schedule::Kind::Recompute)
        busy.forwardsAgain += cost;
    }
    busy.all += time;
    busy.most = std::max(busy.most, time);
  }
  for (double *time : {&busy.forwardsAgain, &busy.all, &busy.most})
    *time /= problem.steps;
  return busy;
}

} // namespace

const Share *Detail::limit() const {
  auto most = std::ranges::max_element(shares.begin() + 1, shares.end(), {},
                                       &Share::time);
  return most->time > 0 ? &*most : nullptr;
}

double Detail::idleShare() const {
  return (shares[2].time + shares[3].time + shares[4].time) / proposal.step;
}

Detail detailOf(const Evaluator &evaluator, const Proposal &proposal) {
  Solution solution = evaluator.solve(proposal);
  const schedule::Problem &problem = solution.problem;
  Busy busy = busyOf(problem, solution.order);
  double mean = busy.all / problem.workers;
  double again = busy.forwardsAgain / problem.workers;
  schedule::StepTime time = stepTime(problem, solution.order);
  schedule::Problem free = problem; // whose messages take no time
  for (schedule::LinkClass *links : free.classes())
    links->link = {};
  double freeActions = stepTime(free, solution.order).actions;
  // The mean of some dozens of steps may be a little less than the busiest
  // worker's time.
  double most = std::min(busy.most, freeActions);
  Detail detail;
  detail.proposal = proposal;
  detail.shares = {
      {"compute", "forwards and backwards, the mean of the workers",
       mean - again},
      {"recompute", "forwards that run again, the mean of the workers", again},
      {"imbalance", "the busiest worker's time above the mean", most - mean},
      {"bubble", "what the busiest worker waits for others, were messages free",
       freeActions - most},
      {"messages", "what they add to that", time.actions - freeActions},
      {"all-reduce", "what is not hidden behind actions", time.allReduce},
      {"update", "what the optimizer adds", time.update}};
  detail.recomputed = static_cast<int32_t>(
      proposal.recompute.size() -
      std::ranges::count(proposal.recompute, schedule::Recompute::None));
  detail.hasSums = problem.width > 1 || problem.pipelines.size() > 1;
  return detail;
}

} // namespace chimera::plan
