//===- BrokenPieces.cpp - Broken ranges, parts, recomputes and bodies -----===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Recompute.h"
#include "test/compiler/schedule/Broken.h"

#include <algorithm>

namespace chimera::schedule {
namespace {

Case pairs() {
  return makeCase("chimera", 2, 4, {1, 2, 1, 1}, false,
                  choose(2, Concatenation::Doubling));
}
Case halves() {
  return makeCase("chimera", 2, 2, {1, 2, 1, 1}, false,
                  choose(2, Concatenation::Halving));
}
Case again(Recompute how) {
  Case c = line();
  c.problem.recompute.assign(2, how);
  c.schedule = insertRecompute(c.problem, c.schedule);
  return c;
}
Case endless() { return makeCase("pipedream", 2, 2); }

const Broken kBroken[] = {
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
     {"unknown-action: worker 0: B1.1, part 2 of 2 is no action of the problem",
      "unknown-action: worker 1: B0.1, part 2 of 2 is no action of the problem",
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
     {"unknown-action: worker 0: F0.0 is no action of the problem",
      "missing: F0.0-1 is missing"}},
    {"APairMissingAndAPairTwice",
     [] {
       Case c = pairs();
       c.schedule.slots.clear();
       c.schedule.workers[1][0] = c.schedule.workers[0][0];
       return c;
     },
     {"placement: worker 1: F0.0-1 belongs on worker 0",
      "duplicate: worker 1: F0.0-1 stands twice",
      "missing: F0.2-3 is missing"}},
    {"APairBehindItsBackwards",
     [] {
       Case c = pairs();
       c.schedule.slots.clear();
       auto &row = c.schedule.workers[0];
       std::rotate(row.begin(), row.begin() + 1, row.end());
       return c;
     },
     {"order: worker 0: B0.0 stands before the forward it needs",
      "order: worker 0: B0.1 stands before the forward it needs",
      "deadlock: worker 0 never gets to B0.0: it needs B1.0, which worker 1 "
      "never gets to",
      "deadlock: worker 1 never gets to F1.0-1: it needs F0.0-1, which worker "
      "0 never gets to"}},
    {"HalvesMixedUp",
     [] {
       Case c = halves();
       c.schedule.slots.clear();
       for (Action &action : c.schedule.workers[0])
         if (action.kind == Kind::Backward && action.microBatch == 0)
           action.part = 1;
       return c;
     },
     {"duplicate: worker 0: B0.0b stands twice", "missing: B0.0a is missing"}},
    {"AWholeForItsHalves",
     [] {
       Case c = halves();
       c.schedule.slots.clear();
       Action &half = c.schedule.workers[0].back();
       half.part = 0;
       half.parts = 1;
       return c;
     },
     {"unknown-action: worker 0: B0.0 is no action of the problem",
      "missing: B0.0b is missing"}},
    {"ARecomputeThatNobodyAskedFor",
     [] {
       Case c = line();
       c.schedule.workers[0].insert(c.schedule.workers[0].begin() + 2,
                                    {Kind::Recompute, 0, 0, 0});
       return c;
     },
     {"unknown-action: worker 0: R0.0 is no action of the problem, which "
      "does not recompute this stage"}},
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
     {"unknown-action: worker 0: R0.0 is no action of the problem, which "
      "does not recompute this stage",
      "unknown-action: worker 0: R0.1 is no action of the problem, which "
      "does not recompute this stage"}},
    {"ARecomputeTwice",
     [] {
       Case c = again(Recompute::Early);
       c.schedule.workers[0].push_back({Kind::Recompute, 0, 0, 0});
       return c;
     },
     {"duplicate: worker 0: R0.0 stands twice"}},
    {"ARecomputeBehindItsBackward",
     [] {
       Case c = again(Recompute::Early);
       std::swap(c.schedule.workers[1][2], c.schedule.workers[1][3]);
       return c;
     },
     {"order: worker 1: B1.0 stands before the recompute it needs"}},
    {"ARecomputeBeforeItsForward",
     [] {
       Case c = again(Recompute::Early);
       auto &row = c.schedule.workers[1];
       std::rotate(row.begin(), row.begin() + 2, row.begin() + 3);
       return c;
     },
     {"order: worker 1: R1.0 stands before the forward it needs"}},
    {"AFusedRecomputeThatWaitsForItsGradient",
     [] {
       Case c = again(Recompute::Fused);
       auto &row = c.schedule.workers[0];
       std::rotate(row.begin() + 1, row.begin() + 2, row.begin() + 3);
       return c;
     },
     {"deadlock: worker 0 never gets to R0.0: it needs B1.0, which worker 1 "
      "never gets to",
      "deadlock: worker 1 never gets to F1.1: it needs F0.1, which worker 0 "
      "never gets to"}},
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
     {"period: expected the body to run B1.1 or that of the second step, got "
      "neither",
      "period: worker 0: B0.1 stands in a section before that of B1.1, which "
      "it needs"}},
    {"AForwardTooEarlyForItsWeights",
     [] {
       Case c = endless();
       std::swap(c.schedule.workers[1][1], c.schedule.workers[1][2]);
       return c;
     },
     {"versions: worker 1: F1.1 reads the weights after 1 updates, but only 0 "
      "stand before it"}},
    {"UpdatesOutOfOrder",
     [] {
       Case c = endless();
       std::swap(c.schedule.workers[0][6], c.schedule.workers[0][7]);
       return c;
     },
     {"versions: worker 0: expected the update of micro-batch 2 on stage 0 "
      "next, got that of 3",
      "versions: worker 0: expected at most 2 versions of stage 0, got 3 "
      "behind B0.1 of the second step"}}};

} // namespace

std::span<const Broken> brokenPieces() { return kBroken; }

std::vector<Case> soundPieces() {
  return {pairs(), halves(), again(Recompute::Early), again(Recompute::Fused),
          endless()};
}

} // namespace chimera::schedule
