//===- GoldenTest.cpp - Peaks and makespans from other software -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compares the library with other programs: with memory peaks that torch 2.15
// computes (analyze_pipeline_activation_liveness, granularity
// stage_microbatch), and with makespans that OR-tools 9.15 proves optimal
// (CP-SAT). No lower bound may be above an optimum, and no schedule that fits
// into the same memory may be below it. Each optimum comes with an order. The
// simulator must find the optimal makespan for this order, so it has the same
// rules.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/formats/OrderText.h"
#include "compiler/schedule/simulate/Bounds.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

namespace chimera::schedule {
namespace {

using Lines = std::vector<std::string>;
using Peaks = std::vector<int32_t>;

/// Reads the order in `lines`, and splits those backwards of `problem` that are
/// split in the order.
Schedule readOrder(Problem &problem, const Lines &lines) {
  const OrderText text(problem.workers, problem.pipelines, problem.updates);
  Schedule schedule;
  for (int32_t w = 0; w < problem.workers; ++w) {
    OrderLine line;
    std::optional<TextError> error = text.read(w, lines[w], line);
    EXPECT_FALSE(error) << error->message;
    schedule.workers.push_back(line.actions);
  }
  problem.splits =
      splitsOf(schedule, static_cast<int32_t>(problem.stages.size()),
               problem.microBatches());
  EXPECT_EQ(violationText(verify(problem, schedule)), "");
  return schedule;
}

/// Gives every stage a stash of 1 byte per micro-batch. A worker holds it until
/// the backward ends or, if the backward is split, until the weight gradient
/// ends. Each worker has memory for `most` stashes.
void capStashes(Problem &problem, int64_t most) {
  problem.bytes.assign(problem.stages.size(), {0, 0, 1, 1, 0});
  problem.memoryCaps.assign(problem.workers, most);
}

/// The peaks that torch computes for its Interleaved1F1B and ZBVZeroBubble.
TEST(Golden, PeaksOfTorch) {
  Case interleaved =
      makeCase("interleaved-1f1b", 4, 8, {1, 2, 1, 1}, false, {{}, 2});
  EXPECT_EQ(simulate(interleaved.problem, interleaved.schedule).peakActivations,
            (Peaks{11, 9, 7, 5}));
  Case zbv = makeCase("zb-v", 4, 8, {1, 2, 1, 1}, false, {{}, 2});
  EXPECT_EQ(simulate(zbv.problem, zbv.schedule).peakActivations, Peaks(4, 8));
}

/// Ten micro-batches run in two rounds of five, as in torch.
TEST(Golden, InterleavedInRoundsOfFive) {
  Case c = makeCase("interleaved-1f1b", 4, 10, {1, 2, 1, 1}, false, {{}, 2});
  Timing timing = simulate(c.problem, c.schedule);
  EXPECT_EQ(timing.makespan, 69);
  EXPECT_EQ(timing.peakActivations, (Peaks{12, 10, 8, 6}));
}

/// The order of torch's DualPipeV for 4 ranks and 8 micro-batches. Torch runs a
/// forward and a backward as an overlapping pair. Here they run one after
/// another. Without the overlap, the order takes as long as ZB-V, and each
/// worker holds one micro-batch more.
TEST(Golden, DualPipeVTakesAsLongAsZeroBubbleVWithoutOverlap) {
  Case zbv = makeCase("zb-v", 4, 8, {1, 2, 1, 1}, false, {{}, 2});
  EXPECT_EQ(simulate(zbv.problem, zbv.schedule).makespan, 51);
  Problem problem = zbv.problem;
  Schedule dualPipeV = readOrder(
      problem,
      {"0F0 0F1 0F2 0F3 0F4 0F5 0F6 7F0 7I0 7W0 7F1 7I1 7W1 7F2 7I2 7W2 7F3 "
       "0F7 7B3 7F4 0B0 7B4 7F5 0B1 7B5 7F6 0B2 7B6 7F7 0B3 7B7 0I4 0W4 0I5 "
       "0W5 0I6 0W6 0I7 0W7",
       "1F0 1F1 1F2 1F3 1F4 6F0 1F5 6F1 6I0 6W0 6F2 6I1 6W1 6F3 1F6 6B2 6F4 "
       "1B0 1F7 6B3 6F5 1B1 6B4 6F6 1B2 6B5 6F7 1B3 6B6 1B4 6I7 1I5 6W7 1I6 "
       "1W5 1I7 1W6 1W7",
       "2F0 2F1 2F2 5F0 2F3 5F1 2F4 5F2 5I0 5W0 5F3 2F5 5B1 5F4 2B0 2F6 5B2 "
       "5F5 2B1 2F7 5B3 5F6 2B2 5B4 5F7 2B3 5B5 2B4 5B6 2I5 5I7 2I6 2W5 2I7 "
       "5W7 2W6 2W7",
       "3F0 4F0 3F1 4F1 3F2 4F2 3F3 4F3 3F4 4B0 4F4 3B0 3F5 4B1 4F5 3B1 3F6 "
       "4B2 4F6 3B2 3F7 4B3 4F7 3B3 4B4 3B4 4B5 3B5 4I6 3I6 4I7 3I7 4W6 3W6 "
       "4W7 3W7"});
  Timing timing = simulate(problem, dualPipeV);
  EXPECT_EQ(timing.makespan, 51);
  EXPECT_EQ(timing.peakActivations, Peaks(4, 9));
}

struct Optimum {
  int64_t cap; ///< number of stashes for which a worker has memory
  int64_t makespan;
  Lines order; ///< an order with this makespan
};

/// Checks that no bound is above the optimum, and that its order takes this
/// time.
void expectReached(Problem problem, const Optimum &optimum) {
  capStashes(problem, optimum.cap);
  const Schedule schedule = readOrder(problem, optimum.order);
  EXPECT_EQ(simulate(problem, schedule).makespan, optimum.makespan);
  for (const Bound &bound : bounds(problem))
    EXPECT_LE(bound.time, optimum.makespan)
        << bound.name << " with a cap of " << optimum.cap;
}

/// Chimera's placement with D = 4 workers and N = 4 micro-batches. A forward
/// takes 1, a backward 2, and a message no time. Micro-batches 0 and 1 are in
/// the down pipeline, and 2 and 3 in the up pipeline.
TEST(Golden, NoOrderOfChimerasPlacementBeatsTheOptimum) {
  const Optimum all[] = {
      {4,
       16,
       {"F1 F0 F3 B3 F2 B2 B1 B0", "F1 F3 F0 F2 B3 B1 B2 B0",
        "F3 F1 F2 F0 B1 B3 B0 B2", "F3 F2 F1 B1 F0 B0 B3 B2"}},
      {3,
       18,
       {"F0 F1 F2 B2 F3 B3 B0 B1", "F0 F2 F1 B2 F3 B0 B3 B1",
        "F2 F0 F3 B0 F1 B2 B1 B3", "F2 F3 F0 B0 F1 B1 B2 B3"}},
      {2,
       21,
       {"F0 F3 B3 F1 B0 F2 B2 B1", "F0 F3 B3 B0 F1 F2 B2 B1",
        "F3 F0 B0 B3 F2 F1 B1 B2", "F3 F0 B0 F2 B3 F1 B1 B2"}}};
  const Case chimera = makeCase("chimera", 4, 4, {1, 2, 1, 1});
  for (const Optimum &optimum : all)
    expectReached(chimera.problem, optimum);
  int32_t fit = 0;
  for (const char *scheme : {"chimera", "gems"})
    for (const Choice &choice : choices(*findScheme(scheme), 4)) {
      // Skip doubling and halving, because they have other actions.
      if (concatenationOf(choice) == Concatenation::Doubling ||
          concatenationOf(choice) == Concatenation::Halving)
        continue;
      Case c = makeCase(scheme, 4, 4, {1, 2, 1, 1}, false, choice);
      if (c.problem.pipelines.size() != 2)
        continue;
      for (const Optimum &optimum : all) {
        capStashes(c.problem, optimum.cap);
        if (!verify(c.problem, c.schedule).empty())
          continue;
        ++fit;
        EXPECT_GE(simulate(c.problem, c.schedule).makespan, optimum.makespan)
            << nameOf(*c.scheme, 4, 4, choice) << " cap " << optimum.cap;
      }
    }
  EXPECT_GE(fit, 4);
}

/// One pipeline with D = 4 workers and N = 8 micro-batches. Forward, input
/// gradient and weight gradient take 1 each. A worker holds a stash until the
/// weight gradient ends. The first order is ZB-H1.
TEST(Golden, NoOrderOfALineBeatsTheOptimum) {
  const Optimum all[] = {
      {4,
       27,
       {"F0 F1 F2 F3 I0 W0 F4 I1 W1 F5 I2 W2 F6 I3 W3 F7 I4 W4 I5 W5 I6 W6 I7 "
        "W7",
        "F0 F1 F2 I0 F3 I1 W0 F4 I2 W1 F5 I3 W2 F6 I4 W3 F7 I5 W4 I6 W5 I7 W6 "
        "W7",
        "F0 F1 I0 F2 I1 F3 I2 W0 F4 I3 W1 F5 I4 W2 F6 I5 W3 F7 I6 W4 I7 W5 W6 "
        "W7",
        "F0 I0 F1 I1 F2 I2 F3 I3 W0 F4 I4 W1 F5 I5 W2 F6 I6 W3 F7 I7 W4 W5 W6 "
        "W7"}},
      {3,
       31,
       {"F0 F1 F2 I0 W0 F3 I1 W1 F4 I2 W2 F5 I3 W3 F6 I4 W4 F7 I5 W5 I6 W6 I7 "
        "W7",
        "F0 F1 F2 I0 W0 I1 W1 F3 I2 W2 F4 I3 F5 W3 I4 W4 F6 I5 F7 W5 I6 W6 I7 "
        "W7",
        "F0 F1 F2 I0 W0 I1 W1 I2 W2 F3 F4 I3 W3 I4 F5 W4 I5 F6 W5 F7 I6 W6 I7 "
        "W7",
        "F0 I0 F1 I1 W0 F2 I2 W1 W2 F3 I3 F4 I4 W3 W4 F5 I5 W5 F6 I6 F7 I7 W6 "
        "W7"}}};
  const Case line =
      makeCase("1f1b", 4, 8, {1, 2, 1, 1}, /*splitBackward=*/true);
  for (const Optimum &optimum : all)
    expectReached(line.problem, optimum);
  int32_t fit = 0;
  for (const char *scheme : {"gpipe", "1f1b"})
    for (int64_t cap : {3, 4, 8}) {
      Case c = makeCase(scheme, 4, 8, {1, 2, 1, 1}, /*splitBackward=*/true);
      capStashes(c.problem, cap);
      if (!verify(c.problem, c.schedule).empty())
        continue;
      ++fit;
      EXPECT_GE(simulate(c.problem, c.schedule).makespan, cap >= 4 ? 27 : 31)
          << scheme << " cap " << cap;
    }
  EXPECT_EQ(fit, 3);
}

} // namespace
} // namespace chimera::schedule
