//===- BrokenOrders.cpp - Missing, doubled or misplaced actions -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/compiler/schedule/verify/Broken.h"

#include <algorithm>

namespace chimera::schedule {
namespace {

Case chimeraCase() { return makeCase("chimera", 4, 4); }

/// A case in which stages 0 and 3 are on worker 0, and stages 1 and 2 on worker
/// 1. It has one micro-batch.
Case foldedCase() {
  Case c = makeCase("gpipe", 4, 1);
  c.problem.workers = 2;
  c.problem.pipelines[0].workers = {0, 1, 1, 0};
  c.schedule.workers = {{{Kind::Forward, 0, 0, 0},
                         {Kind::Forward, 0, 3, 0},
                         {Kind::Backward, 0, 3, 0},
                         {Kind::Backward, 0, 0, 0}},
                        {{Kind::Forward, 0, 1, 0},
                         {Kind::Forward, 0, 2, 0},
                         {Kind::Backward, 0, 2, 0},
                         {Kind::Backward, 0, 1, 0}}};
  return c;
}

const Broken kBrokenOrders[] = {
    {"NothingAtAll",
     [] {
       Case c = smallGpipe();
       for (auto &row : c.schedule.workers)
         row.clear();
       return c;
     },
     {"missing: F0.0 is missing", "missing: B0.0 is missing",
      "missing: F0.1 is missing", "missing: B0.1 is missing",
      "missing: F1.0 is missing", "missing: B1.0 is missing",
      "missing: F1.1 is missing", "missing: B1.1 is missing"}},
    {"NoWorkers",
     [] {
       Case c = makeCase("gpipe", 2, 1);
       c.schedule.workers.clear();
       return c;
     },
     {"placement: expected orders for 2 workers, got 0",
      "missing: F0.0 is missing", "missing: B0.0 is missing",
      "missing: F1.0 is missing", "missing: B1.0 is missing"}},
    {"AWorkerTooMany",
     [] {
       Case c = smallGpipe();
       c.schedule.workers.push_back({{Kind::Forward, 0, 0, 0}});
       return c;
     },
     {"placement: expected orders for 2 workers, got 3",
      "placement: worker 2: F0.0 belongs on worker 0",
      "duplicate: worker 2: F0.0 is in the order twice"}},
    {"OneMissing",
     [] {
       Case c = smallGpipe();
       c.schedule.workers[1].pop_back();
       return c;
     },
     {"missing: B1.1 is missing"}},
    {"AMissingForward",
     [] {
       Case c = smallGpipe();
       c.schedule.workers[0].erase(c.schedule.workers[0].begin());
       return c;
     },
     {"missing: F0.0 is missing"}},
    {"OneTwice",
     [] {
       Case c = smallGpipe();
       c.schedule.workers[0].push_back({Kind::Forward, 0, 0, 1});
       return c;
     },
     {"duplicate: worker 0: F0.1 is in the order twice"}},
    {"TwiceOnTwoWorkers",
     [] {
       Case c = smallGpipe();
       c.schedule.workers[1].push_back({Kind::Forward, 0, 0, 1});
       return c;
     },
     {"placement: worker 1: F0.1 belongs on worker 0",
      "duplicate: worker 1: F0.1 is in the order twice"}},
    {"OneForAnother",
     [] {
       Case c = smallGpipe();
       c.schedule.workers[0][0].microBatch = 1;
       return c;
     },
     {"duplicate: worker 0: F0.1 is in the order twice: is F0.0 meant, which "
      "is missing?"}},
    {"UnknownStagesAndBatches",
     [] {
       Case c = smallGpipe();
       for (Action action :
            {Action{Kind::Forward, 0, 2, 0}, Action{Kind::Backward, 0, 0, 2},
             Action{Kind::Forward, 1, 0, 0}, Action{Kind::Backward, 0, -1, -1}})
         c.schedule.workers[1].push_back(action);
       return c;
     },
     {"unknown-action: worker 1: unknown action F2.0",
      "unknown-action: worker 1: unknown action B0.2",
      "unknown-action: worker 1: unknown action F0.0",
      "unknown-action: worker 1: unknown action B-1.-1"}},
    {"SplitWhereWhole",
     [] {
       Case c = makeCase("gpipe", 1, 1);
       c.schedule = splitBackwards(c.schedule);
       return c;
     },
     {"unknown-action: worker 0: unknown action I0.0: this backward is whole, "
      "so write B",
      "unknown-action: worker 0: unknown action W0.0: this backward is whole, "
      "so write B",
      "missing: B0.0 is missing"}},
    {"WholeWhereSplit",
     [] {
       Case c = makeCase("gpipe", 1, 1);
       c.problem.splits = true;
       return c;
     },
     {"unknown-action: worker 0: unknown action B0.0: this backward is split, "
      "so write I (its input gradient) here, and W (its weight gradient) here "
      "or later (zero-bubble papers write B and W: chimera-show "
      "--zero-bubble-notation reads a file of them)",
      "missing: I0.0 is missing", "missing: W0.0 is missing"}},
    {"WorkersSwapped",
     [] {
       Case c = makeCase("gpipe", 2, 1);
       std::swap(c.schedule.workers[0], c.schedule.workers[1]);
       return c;
     },
     {"placement: worker 0: F1.0 belongs on worker 1",
      "placement: worker 0: B1.0 belongs on worker 1",
      "placement: worker 1: F0.0 belongs on worker 0",
      "placement: worker 1: B0.0 belongs on worker 0"}},
    {"BackwardsFirst",
     [] {
       Case c = smallGpipe();
       std::reverse(c.schedule.workers[1].begin(), c.schedule.workers[1].end());
       return c;
     },
     {"order: worker 1: B1.1 must come after the forward that it depends on",
      "order: worker 1: B1.0 must come after the forward that it depends on"}},
    {"WeightGradientsFirst",
     [] {
       Case c = makeCase("gpipe", 1, 2, {}, true);
       std::reverse(c.schedule.workers[0].begin(), c.schedule.workers[0].end());
       return c;
     },
     {"order: worker 0: W0.1 must come after the input_gradient that it "
      "depends on",
      "order: worker 0: I0.1 must come after the forward that it depends on",
      "order: worker 0: W0.0 must come after the input_gradient that it "
      "depends on",
      "order: worker 0: I0.0 must come after the forward that it depends on"}},
    {"StagesOfOneWorkerSwapped",
     [] {
       Case c = foldedCase();
       std::swap(c.schedule.workers[1][0], c.schedule.workers[1][1]);
       return c;
     },
     {"order: worker 1: F2.0 must come after the forward of stage 1 that it "
      "depends on"}},
    {"AWayRoundTheOtherWorker",
     [] {
       Case c = foldedCase();
       std::swap(c.schedule.workers[0][0], c.schedule.workers[0][1]);
       return c;
     },
     {"deadlock: deadlock: worker 0 cannot run F3.0, because it waits for "
      "F2.0, which worker 1 cannot run before F1.0",
      "deadlock: deadlock: worker 1 cannot run F1.0, because it waits for "
      "F0.0, which worker 0 cannot run before F3.0"}},
    {"TwoWait",
     [] {
       Case c = smallGpipe();
       std::swap(c.schedule.workers[0][1], c.schedule.workers[0][2]);
       return c;
     },
     {"deadlock: deadlock: worker 0 cannot run B0.0, because it waits for "
      "B1.0, which worker 1 cannot run before F1.1",
      "deadlock: deadlock: worker 1 cannot run F1.1, because it waits for "
      "F0.1, which worker 0 cannot run before B0.0"}},
    {"AllWaitAndOneIsMissing",
     [] {
       Case c = smallGpipe();
       std::swap(c.schedule.workers[0][1], c.schedule.workers[0][2]);
       c.schedule.workers[1].pop_back();
       return c;
     },
     {"deadlock: deadlock: worker 0 cannot run B0.0, because it waits for "
      "B1.0, which worker 1 cannot run before F1.1",
      "deadlock: deadlock: worker 1 cannot run F1.1, because it waits for "
      "F0.1, which worker 0 cannot run before B0.0",
      "missing: B1.1 is missing"}},
    {"SlotsOutOfOrder",
     [] {
       Case c = makeCase("chimera", 2, 2);
       c.schedule.slots = {{0, 1, 1, 3}, {4, 5, 6, 6}};
       return c;
     },
     {"slots: F1.1 in slot 1 depends on F0.1, which is not in an earlier slot, "
      "but in slot 4",
      "slots: worker 0: expected a slot after that of the previous action, got "
      "slot 1 for B1.1",
      "slots: B0.0 in slot 3 depends on B1.0, which is not in an earlier slot, "
      "but in slot 6",
      "slots: worker 1: expected a slot after that of the previous action, got "
      "slot 6 for B0.1"}},
    {"TooMuchMemoryAndTooLittleOrder",
     [] {
       Case c = smallGpipe();
       c.problem.bytes = {{1, 0, 10, 10, 0}, {1, 0, 10, 10, 0}};
       c.problem.memoryCaps = {21, 12};
       std::swap(c.schedule.workers[1][1], c.schedule.workers[1][2]);
       std::swap(c.schedule.workers[1][0], c.schedule.workers[1][1]);
       return c;
     },
     {"order: worker 1: B1.0 must come after the forward that it depends on",
      "memory: worker 0 needs 22 bytes at B0.0, more than its cap of 21"}},
    {"RepeatsAndUnknownOnesHoldNoMemory",
     [] {
       Case c = smallGpipe();
       c.problem.bytes = {{1, 0, 10, 10, 0}, {1, 0, 10, 10, 0}};
       c.problem.memoryCaps = {22, 22};
       c.schedule.workers[0].insert(c.schedule.workers[0].begin() + 1, 2,
                                    {Kind::Forward, 0, 0, 0});
       c.schedule.workers[1].insert(c.schedule.workers[1].begin(), 2,
                                    {Kind::Forward, 0, 1, 7});
       return c;
     },
     {"duplicate: worker 0: F0.0 is in the order twice",
      "duplicate: worker 0: F0.0 is in the order twice",
      "unknown-action: worker 1: unknown action F1.7",
      "unknown-action: worker 1: unknown action F1.7"}}};

} // namespace

std::span<const Broken> brokenOrders() { return kBrokenOrders; }

std::vector<Case> soundOrders() {
  return {smallGpipe(), chimeraCase(), foldedCase()};
}

} // namespace chimera::schedule
