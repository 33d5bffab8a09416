//===- Formulas.cpp - Closed forms of bubble and memory -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/families/Formulas.h"

#include "compiler/schedule/model/CoreGroups.h"

#include <algorithm>

namespace chimera::schedule {

double linearBubble(const Sizes &s) {
  return ratio(s.workers - 1, s.microBatches);
}

std::pair<int64_t, int64_t> upToWorkers(const Sizes &s) {
  return {1, std::min(s.microBatches, s.workers)};
}

double idleShare(const Sizes &s, int64_t makespan) {
  return 1 - static_cast<double>(s.microBatches * (s.forward + s.backward)) /
                 static_cast<double>(makespan);
}

std::optional<Sizes> sizesOf(const Problem &problem, Options options) {
  bool isSplit = problem.splits.any();
  if ((isSplit && problem.splits.anyWhole()) || problem.workers == 0 ||
      sharesCores(problem))
    return std::nullopt;
  std::optional<Sizes> sizes;
  for (size_t s = 0; s < problem.stages.size(); ++s) {
    auto stage = static_cast<int32_t>(s);
    Recompute how = problem.recomputeOf(stage);
    const StageCost &cost = problem.stages[s];
    int64_t again = how == Recompute::Fused ? cost.recompute : 0;
    Sizes own{.options = options,
              .workers = problem.workers,
              .stages = static_cast<int64_t>(problem.stages.size()),
              .microBatches = problem.microBatches(),
              .isSplit = isSplit,
              .forward = cost.forward,
              .backward =
                  again + (isSplit ? cost.inputGradient + cost.weightGradient
                                   : cost.backward),
              .inputGradient = isSplit ? again + cost.inputGradient : 0,
              .weightGradient = isSplit ? cost.weightGradient : 0,
              .recomputed = how == Recompute::Fused};
    int64_t messages = 0;
    for (const LinkClass *links : problem.classes())
      for (const MessageTime &of : links->link.times())
        messages += problem.messageTime(of, stage);
    if (how == Recompute::Early || messages != 0 || (sizes && *sizes != own))
      return std::nullopt;
    for (const Pipeline &pipeline : problem.pipelines)
      for (int64_t time :
           {own.backward - again, again, own.inputGradient, own.weightGradient})
        if (time % pipeline.backwardParts != 0)
          return std::nullopt;
    sizes = std::move(own);
  }
  return sizes;
}

} // namespace chimera::schedule
