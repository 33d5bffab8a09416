//===- AllReduce.cpp - Start and time of all-reduces ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/simulate/AllReduce.h"

#include <algorithm>

namespace chimera::schedule {

std::vector<std::vector<int64_t>> idleAfter(const Schedule &schedule,
                                            const Timing &timing) {
  std::vector<std::vector<int64_t>> idle;
  for (size_t w = 0; w < schedule.workers.size(); ++w) {
    std::vector<int64_t> &after = idle.emplace_back(schedule.workers[w].size());
    for (size_t i = after.size(); i-- > 1;)
      after[i - 1] = after[i] + timing.starts[w][i] - timing.ends[w][i - 1];
  }
  return idle;
}

bool hasAllReduces(const Problem &problem) {
  if (problem.width > 1 || problem.pipelines.size() > 1 ||
      (problem.clips && problem.workers > 1))
    return true;
  // Tied parameters have a separate all-reduce, over the workers of the first
  // and the last stage.
  const std::vector<int32_t> &workers = problem.pipelines.front().workers;
  return problem.tiedBytes > 0 && workers.front() != workers.back();
}

static bool allReducesTakeTime(const LinkClass *links) {
  auto takesTime = [](const MessageTime &time) {
    return time.alpha > 0 || time.beta > 0;
  };
  return takesTime(links->allReduceOverhead) ||
         (links->allReduceMessage
              ? takesTime(*links->allReduceMessage)
              : std::ranges::any_of(links->link.times(), takesTime));
}

bool hasSyncAndUpdate(const Problem &problem) {
  auto takesTime = [](const StageCost &cost) { return cost.update > 0; };
  if (problem.clips || std::ranges::any_of(problem.stages, takesTime))
    return true;
  return hasAllReduces(problem) &&
         std::ranges::any_of(problem.classes(), allReducesTakeTime);
}

/// True if a worker has several replicas of `stage`.
static bool hasWorkerWithSeveralReplicas(const Problem &problem,
                                         int32_t stage) {
  std::vector<int32_t> holders;
  for (const Pipeline &pipeline : problem.pipelines)
    holders.push_back(pipeline.workers[stage]);
  std::ranges::sort(holders);
  return std::ranges::adjacent_find(holders) != holders.end();
}

std::vector<GradientReduce> gradientReduces(const Problem &problem,
                                            const Schedule &schedule,
                                            const Timing &timing) {
  std::vector<std::vector<int64_t>> idle = idleAfter(schedule, timing);
  auto stages = static_cast<int32_t>(problem.stages.size());
  auto isTied = [&](int32_t stage) {
    return problem.tiedBytes > 0 && (stage == 0 || stage + 1 == stages);
  };
  std::vector<GradientReduce> reduces;
  auto bucketCount = [&](int64_t bytes) {
    return bucketsOf(bytes, problem.bucketBytes).count;
  };
  for (int32_t s = 0; s < stages; ++s) {
    int64_t bytes =
        problem.bytesOf(s).gradient() - (isTied(s) ? problem.tiedBytes : 0);
    reduces.push_back(
        {s,
         bytes,
         hasWorkerWithSeveralReplicas(problem, s) ? 1 : bucketCount(bytes),
         {}});
  }
  if (problem.tiedBytes > 0)
    reduces.push_back(
        {std::nullopt, problem.tiedBytes, bucketCount(problem.tiedBytes), {}});
  // Start and worker of the last action that adds to each gradient.
  std::vector<std::pair<int64_t, int32_t>> last(reduces.size());
  for (size_t w = 0; w < schedule.workers.size(); ++w) {
    const std::vector<Action> &actions = schedule.workers[w];
    for (size_t i = 0; i < actions.size(); ++i) {
      if (!addsToGradient(actions[i].kind))
        continue;
      int64_t start = timing.starts[w][i];
      auto worker = static_cast<int32_t>(w);
      auto contribute = [&](int32_t to) {
        std::vector<GradientReduce::Contribution> &contributions =
            reduces[to].contributions;
        if (contributions.empty() || contributions.back().worker != worker)
          contributions.push_back({worker, 0, false});
        contributions.back().lastAction = static_cast<int32_t>(i);
        contributions.back().isIdle = idle[w][i] > 0;
        last[to] = std::max(last[to], std::pair(start, worker));
      };
      contribute(actions[i].stage);
      if (isTied(actions[i].stage))
        contribute(stages);
    }
  }
  std::ranges::stable_sort(reduces, {}, [&](const GradientReduce &reduce) {
    return last[reduce.stage.value_or(stages)];
  });
  return reduces;
}

int64_t allReduceTime(const Workload &workload,
                      std::span<const int32_t> workers, int64_t bytes,
                      int64_t buckets) {
  return allReduceTime(workload.linksOf(workers, /*allCopies=*/true),
                       workload.allReduceAlgorithm,
                       replicasOf(workload, std::ssize(workers)), bytes,
                       buckets);
}

} // namespace chimera::schedule
