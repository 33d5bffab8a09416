//===- BrokenPieces.cpp - Broken ranges, parts, recomputes and bodies -----===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/model/Recompute.h"
#include "test/compiler/schedule/verify/Broken.h"

#include <algorithm>

namespace chimera::schedule {
namespace {

Case pairs() {
  return makeCase("chimera", 2, 4, {1, 2, 1, 1}, false,
                  chimeraWith(2, Concatenation::Doubling));
}
Case halves() {
  return makeCase("chimera", 2, 2, {1, 2, 1, 1}, false,
                  chimeraWith(2, Concatenation::Halving));
}
Case again(Recompute how) {
  Case c = smallGpipe();
  c.problem.recompute.assign(2, how);
  c.schedule = insertRecompute(c.problem, c.schedule);
  return c;
}
Case endless() { return makeCase("pipedream", 2, 2); }

const Broken kBrokenPieces[] = {
    {"TwoHalvesOfOneBackwardForAnother",
     [] {
       Case c = halves();
       c.schedule.slots.clear();
       for (auto &row : c.schedule.workers)
         for (Action &action : row)
           if (action.kind == Kind::Backward && action.microBatch == 1 &&
               action.part == 1)
             action.part = 2;
       return c;
     },
     {"unknown-action: worker 0: unknown action B1.1, part 2 of 2",
      "unknown-action: worker 1: unknown action B0.1, part 2 of 2",
      "missing: B0.1b is missing", "missing: B1.1b is missing"}},
    {"HalvesMayComeInAnyOrder",
     [] {
       Case c = halves();
       c.schedule.slots.clear();
       for (Action &action : c.schedule.workers[1])
         if (action.kind == Kind::Backward && action.microBatch == 0)
           action.part = 1 - action.part;
       return c;
     },
     {}},
    {"APairApart",
     [] {
       Case c = pairs();
       c.schedule.slots.clear();
       Action &pair = c.schedule.workers[0][0];
       pair.microBatches = 1;
       return c;
     },
     {"unknown-action: worker 0: unknown action F0.0",
      "missing: F0.0-1 is missing"}},
    {"APairMissingAndAPairTwice",
     [] {
       Case c = pairs();
       c.schedule.slots.clear();
       c.schedule.workers[1][0] = c.schedule.workers[0][0];
       return c;
     },
     {"placement: worker 1: F0.0-1 belongs on worker 0",
      "duplicate: worker 1: F0.0-1 is in the order twice: is F0.2-3 meant, "
      "which is missing?"}},
    {"APairBehindItsBackwards",
     [] {
       Case c = pairs();
       c.schedule.slots.clear();
       auto &row = c.schedule.workers[0];
       std::rotate(row.begin(), row.begin() + 1, row.end());
       return c;
     },
     {"order: worker 0: B0.0 must come after the forward that it depends on",
      "order: worker 0: B0.1 must come after the forward that it depends on"}},
    {"HalvesMixedUp",
     [] {
       Case c = halves();
       c.schedule.slots.clear();
       for (Action &action : c.schedule.workers[0])
         if (action.kind == Kind::Backward && action.microBatch == 0)
           action.part = 1;
       return c;
     },
     {"duplicate: worker 0: B0.0b is in the order twice: is B0.0a meant, which "
      "is missing?"}},
    {"AWholeForItsHalves",
     [] {
       Case c = halves();
       c.schedule.slots.clear();
       Action &half = c.schedule.workers[0].back();
       half.part = 0;
       half.parts = 1;
       return c;
     },
     {"unknown-action: worker 0: unknown action B0.0",
      "missing: B0.0b is missing"}},
    {"ARecomputeThatNobodyAskedFor",
     [] {
       Case c = smallGpipe();
       c.schedule.workers[0].insert(c.schedule.workers[0].begin() + 2,
                                    {Kind::Recompute, 0, 0, 0});
       return c;
     },
     {"unknown-action: worker 0: unknown action R0.0: this stage is not "
      "recomputed"}},
    {"AFusedRecomputeMissing",
     [] {
       Case c = again(Recompute::Fused);
       c.schedule.workers[0].erase(c.schedule.workers[0].begin() + 2);
       return c;
     },
     {"missing: R0.0 is missing"}},
    {"AnEarlyRecomputeMayBeMissing",
     [] {
       Case c = again(Recompute::Early);
       c.schedule.workers[0].erase(c.schedule.workers[0].begin() + 2);
       return c;
     },
     {}},
    {"AnEarlyRecomputeAndItsBackwardMissing",
     [] {
       Case c = again(Recompute::Early);
       auto &row = c.schedule.workers[0];
       row.erase(row.begin() + 2, row.begin() + 4);
       return c;
     },
     {"missing: B0.0 is missing"}},
    {"ARecomputeOfAnotherStage",
     [] {
       Case c = again(Recompute::Early);
       c.problem.recompute[0] = Recompute::None;
       return c;
     },
     {"unknown-action: worker 0: unknown action R0.0: this stage is not "
      "recomputed",
      "unknown-action: worker 0: unknown action R0.1: this stage is not "
      "recomputed"}},
    {"ARecomputeTwice",
     [] {
       Case c = again(Recompute::Early);
       c.schedule.workers[0].push_back({Kind::Recompute, 0, 0, 0});
       return c;
     },
     {"duplicate: worker 0: R0.0 is in the order twice"}},
    {"ARecomputeBehindItsBackward",
     [] {
       Case c = again(Recompute::Early);
       std::swap(c.schedule.workers[1][2], c.schedule.workers[1][3]);
       return c;
     },
     {"order: worker 1: B1.0 must come after the recompute that it depends "
      "on"}},
    {"ARecomputeBeforeItsForward",
     [] {
       Case c = again(Recompute::Early);
       auto &row = c.schedule.workers[1];
       std::rotate(row.begin(), row.begin() + 2, row.begin() + 3);
       return c;
     },
     {"order: worker 1: R1.0 must come after the forward that it depends on"}},
    {"AFusedRecomputeThatWaitsForItsGradient",
     [] {
       Case c = again(Recompute::Fused);
       auto &row = c.schedule.workers[0];
       std::rotate(row.begin() + 1, row.begin() + 2, row.begin() + 3);
       return c;
     },
     {"deadlock: deadlock: worker 0 cannot run R0.0, because it waits for "
      "B1.0, which worker 1 cannot run before F1.1",
      "deadlock: deadlock: worker 1 cannot run F1.1, because it waits for "
      "F0.1, which worker 0 cannot run before R0.0"}},
    {"NoBodies",
     [] {
       Case c = endless();
       c.schedule.bodies.clear();
       return c;
     },
     {"period: expected a body in the order of each worker"}},
    {"ABodyTooShort",
     [] {
       Case c = endless();
       --c.schedule.bodies[1].end;
       return c;
     },
     {"period: expected the body to run B1.1, either of the first or of the "
      "second step, got neither",
      "period: worker 0: B0.1 depends on B1.1, which is in a later section"}},
    {"AForwardTooEarlyForItsWeights",
     [] {
       Case c = endless();
       std::swap(c.schedule.workers[1][1], c.schedule.workers[1][2]);
       return c;
     },
     {"versions: worker 1: F1.1 reads the weights after 1 updates, but only 0 "
      "come before it"}},
    {"UpdatesOutOfOrder",
     [] {
       Case c = endless();
       std::swap(c.schedule.workers[0][6], c.schedule.workers[0][7]);
       return c;
     },
     {"versions: worker 0: expected the update of micro-batch 2 on stage 0 "
      "next, got that of 3",
      "versions: worker 0: expected at most 2 versions of stage 0, got 3 after "
      "B0.1 of the second step"}}};

} // namespace

std::span<const Broken> brokenPieces() { return kBrokenPieces; }

std::vector<Case> soundPieces() {
  return {pairs(), halves(), again(Recompute::Early), again(Recompute::Fused),
          endless()};
}

} // namespace chimera::schedule
