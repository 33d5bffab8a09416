//===- Recompute.cpp - Insertion and removal of recomputes ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/model/Recompute.h"

namespace chimera::schedule {

/// True if `backward` reads the stash that `forward` made.
static bool isForwardOf(const Action &forward, const Action &backward) {
  return forward.kind == Kind::Forward &&
         forward.pipeline == backward.pipeline &&
         forward.stage == backward.stage &&
         forward.microBatch <= backward.microBatch &&
         backward.microBatch < forward.microBatch + forward.microBatches;
}

Schedule insertRecompute(const Problem &problem, const Schedule &schedule) {
  return replaceActions(schedule, [&](std::vector<Action> &out,
                                      const Action &action) {
    if (makesGradient(action.kind)) {
      Recompute how = problem.recomputeOf(action.stage);
      bool isFresh = !out.empty() && isForwardOf(out.back(), action);
      if (how == Recompute::Fused || (how == Recompute::Early && !isFresh)) {
        Action recompute = action;
        recompute.kind = Kind::Recompute;
        // Nothing can run between the two actions of a pair.
        out.insert(out.end() - (endsPair(out, out.size()) ? 1 : 0), recompute);
      }
    }
    out.push_back(action);
  });
}

Schedule removeRecompute(const Schedule &schedule) {
  return replaceActions(schedule,
                        [](std::vector<Action> &out, const Action &action) {
                          if (action.kind != Kind::Recompute)
                            out.push_back(action);
                        });
}

} // namespace chimera::schedule
