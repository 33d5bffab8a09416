//===- StepBreakdown.cpp - The shares of a step's time --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/search/StepBreakdown.h"

#include "compiler/schedule/model/CoreGroups.h"

#include <algorithm>
#include <set>

namespace chimera::plan {

namespace {

/// The times of actions in one step, in ns.
struct Busy {
  double forwardsAgain = 0;     ///< of recomputes, summed over all workers
  double all = 0;               ///< of all actions, summed over all workers
  double most = 0;              ///< of all actions of the busiest worker
  std::set<int32_t> recomputed; ///< stages that are recomputed
};

Busy busyOf(const schedule::Problem &problem, const schedule::Schedule &order) {
  Busy busy;
  for (const std::vector<schedule::Action> &worker : order.workers) {
    double time = 0;
    for (const schedule::Action &action : worker) {
      auto cost = static_cast<double>(problem.cost(action));
      time += cost;
      if (action.kind == schedule::Kind::Recompute) {
        busy.forwardsAgain += cost;
        busy.recomputed.insert(action.stage);
      }
    }
    busy.all += time;
    busy.most = std::max(busy.most, time);
  }
  for (double *time : {&busy.forwardsAgain, &busy.all, &busy.most})
    *time /= problem.steps;
  return busy;
}

} // namespace

const StepShare *StepBreakdown::largestAvoidableShare() const {
  auto most = std::ranges::max_element(shares.begin() + 1, shares.end(), {},
                                       &StepShare::time);
  return most->time > 0 ? &*most : nullptr;
}

double StepBreakdown::idleShare() const {
  return (timeOf(StepPart::Imbalance) + timeOf(StepPart::Bubble) +
          timeOf(StepPart::Messages)) /
         proposal.stepTime;
}

StepBreakdown breakdownOf(const Evaluator &evaluator,
                          const Proposal &proposal) {
  Solution solution = evaluator.solutionOf(proposal);
  const schedule::Problem &problem = solution.problem;
  Busy busy = busyOf(problem, solution.order);
  double mean = busy.all / problem.workers;
  double again = busy.forwardsAgain / problem.workers;
  schedule::StepTime time = stepTime(problem, solution.order);
  schedule::Problem free = problem; // the problem without message times
  for (schedule::LinkClass *links : free.classes())
    links->link = {};
  const double withCores = stepTime(free, solution.order).actions;
  double alone = withCores; // also without waits for cores
  if (schedule::sharesCores(problem)) {
    free.node->cores = 0;
    alone = stepTime(free, solution.order).actions;
  }
  // `busy.most` may be slightly more than the simulated time, which is a mean
  // of some dozens of steps. The minimum keeps the bubble from being negative.
  double most = std::min(busy.most, alone);
  StepBreakdown breakdown;
  breakdown.proposal = proposal;
  breakdown.shares = {
      {StepPart::Compute, "compute",
       "the time of forwards and backwards, as a mean over the workers",
       mean - again},
      {StepPart::Recompute, "recompute",
       "the time of forwards that run again, as a mean over the workers",
       again},
      {StepPart::Imbalance, "imbalance",
       "the time by which the busiest worker computes longer than the mean of "
       "the workers",
       most - mean},
      {StepPart::Bubble, "bubble",
       "the time for which the busiest worker waits for other workers, not "
       "counting waits that come from messages or shared cores",
       alone - most},
      {StepPart::SharedCores, "shared cores",
       "the time by which a step grows because workers share the cores of "
       "their node",
       withCores - alone},
      {StepPart::Messages, "messages",
       "the time by which a step grows because messages take time",
       time.actions - withCores},
      {StepPart::AllReduce, "all-reduce",
       "the time by which a step grows because workers wait for sums of "
       "gradients",
       time.allReduce},
      {StepPart::Update, "update",
       "the time by which a step grows because the optimizer updates weights",
       time.update}};
  breakdown.recomputed = static_cast<int32_t>(busy.recomputed.size());
  breakdown.hasSums = schedule::hasAllReduces(problem);
  return breakdown;
}

} // namespace chimera::plan
