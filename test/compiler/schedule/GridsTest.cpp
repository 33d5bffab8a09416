//===- GridsTest.cpp - The published grids, cell by cell ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compares the library's schedules with grids of the same sizes from papers: Li
// and Hoefler's (Figures 3, 7 and 8) and others.
//
//===----------------------------------------------------------------------===//

#include "test/compiler/schedule/Grids.h"
#include "compiler/schedule/simulate/Memory.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "compiler/schedule/timeline/Timeline.h"
#include "compiler/schedule/verify/Verify.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

namespace chimera::schedule {
namespace {

/// Checks that renderGrid draws `grid`, in slots or in times.
void expectGrid(const Case &c, const std::string &grid, bool slots) {
  ASSERT_EQ(violationText(verify(c.problem, c.schedule)), "");
  Timing timing = slots ? slotTiming(c.problem, c.schedule)
                        : simulate(c.problem, c.schedule);
  EXPECT_EQ(cellsOf(gridOf(c, timing, slots)), cellsOf(grid));
}

/// Li and Hoefler, Figure 3, upper right.
const char *const kFigure3 = R"(
slot 0   1   2   3   4   5   6   7   8   9
P0   F0  .   F1  f2  b2  f3  b3  B0  .   B1
P1   .   F0  f2  F1  f3  b2  B0  b3  B1  .
P2   .   f2  F0  f3  F1  B0  b2  B1  b3  .
P3   f2  .   f3  F0  B0  F1  B1  b2  .   b3
)";

TEST(Grids, ChimeraInSlots) {
  expectGrid(makeCase("chimera", 4, 4), kFigure3, true);
}

const char *const kEightWorkers = R"(
slot 0   1   2   3   4   5   6   7   8   9   10  11  12  13  14  15  16  17  18  19  20  21
P0   F0  .   F1  .   F2  .   F3  f4  b4  f5  b5  f6  b6  f7  b7  B0  .   B1  .   B2  .   B3
P1   .   F0  .   F1  .   F2  f4  F3  f5  b4  f6  b5  f7  b6  B0  b7  B1  .   B2  .   B3  .
P2   .   .   F0  .   F1  f4  F2  f5  F3  f6  b4  f7  b5  B0  b6  B1  b7  B2  .   B3  .   .
P3   .   .   .   F0  f4  F1  f5  F2  f6  F3  f7  b4  B0  b5  B1  b6  B2  b7  B3  .   .   .
P4   .   .   .   f4  F0  f5  F1  f6  F2  f7  F3  B0  b4  B1  b5  B2  b6  B3  b7  .   .   .
P5   .   .   f4  .   f5  F0  f6  F1  f7  F2  B0  F3  B1  b4  B2  b5  B3  b6  .   b7  .   .
P6   .   f4  .   f5  .   f6  F0  f7  F1  B0  F2  B1  F3  B2  b4  B3  b5  .   b6  .   b7  .
P7   f4  .   f5  .   f6  .   f7  F0  B0  F1  B1  F2  B2  F3  B3  b4  .   b5  .   b6  .   b7
)";

TEST(Grids, ChimeraOnEightWorkersInSlots) {
  expectGrid(makeCase("chimera", 8, 8), kEightWorkers, true);
}

/// The same orders as in kFigure3, in times. Actions run as soon as possible,
/// and backwards take twice as long as forwards.
const char *const kFourTimed = R"(
t    0   1   2   3   4   5   6   7   8   9   10  11  12  13  14  15
P0   F0  F1  .   f2  b2  =   f3  b3  =   .   B0  =   .   .   B1  =
P1   .   F0  f2  F1  f3  .   b2  =   B0  =   b3  =   B1  =   .   .
P2   .   f2  F0  f3  F1  .   B0  =   b2  =   B1  =   b3  =   .   .
P3   f2  f3  .   F0  B0  =   F1  B1  =   .   b2  =   .   .   b3  =
)";

TEST(Grids, ChimeraInTime) {
  expectGrid(makeCase("chimera", 4, 4, {1, 2, 1, 1}), kFourTimed, false);
}

const char *const kEightTimed = R"(
t    0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35
P0   F0 F1 F2 F3 .  .  .  f4 b4 =  f5 b5 =  f6 b6 =  f7 b7 =  .  .  .  B0 =  .  .  B1 =  .  .  B2 =  .  .  B3 =
P1   .  F0 F1 F2 .  .  f4 F3 f5 .  b4 =  f6 b5 =  f7 b6 =  .  .  B0 =  b7 =  B1 =  .  .  B2 =  .  .  B3 =  .  .
P2   .  .  F0 F1 .  f4 F2 f5 F3 f6 .  .  b4 =  f7 b5 =  .  B0 =  b6 =  B1 =  b7 =  B2 =  .  .  B3 =  .  .  .  .
P3   .  .  .  F0 f4 F1 f5 F2 f6 F3 f7 .  .  .  b4 =  B0 =  b5 =  B1 =  b6 =  B2 =  b7 =  B3 =  .  .  .  .  .  .
P4   .  .  .  f4 F0 f5 F1 f6 F2 f7 F3 .  .  .  B0 =  b4 =  B1 =  b5 =  B2 =  b6 =  B3 =  b7 =  .  .  .  .  .  .
P5   .  .  f4 f5 .  F0 f6 F1 f7 F2 .  .  B0 =  F3 B1 =  .  b4 =  B2 =  b5 =  B3 =  b6 =  .  .  b7 =  .  .  .  .
P6   .  f4 f5 f6 .  .  F0 f7 F1 .  B0 =  F2 B1 =  F3 B2 =  .  .  b4 =  B3 =  b5 =  .  .  b6 =  .  .  b7 =  .  .
P7   f4 f5 f6 f7 .  .  .  F0 B0 =  F1 B1 =  F2 B2 =  F3 B3 =  .  .  .  b4 =  .  .  b5 =  .  .  b6 =  .  .  b7 =
)";

TEST(Grids, ChimeraOnEightWorkersInTime) {
  expectGrid(makeCase("chimera", 8, 8, {1, 2, 1, 1}), kEightTimed, false);
}

/// Li and Hoefler, Figure 7b.
const char *const kDirect = R"(
slot 0   1   2   3   4   5   6   7   8   9   10  11  12  13  14  15  16  17
P0   F0  .   F1  f2  b2  f3  b3  B0  F4  B1  F5  f6  b6  f7  b7  B4  .   B5
P1   .   F0  f2  F1  f3  b2  B0  b3  B1  F4  f6  F5  f7  b6  B4  b7  B5  .
P2   .   f2  F0  f3  F1  B0  b2  B1  b3  f6  F4  f7  F5  B4  b6  B5  b7  .
P3   f2  .   f3  F0  B0  F1  B1  b2  f6  b3  f7  F4  B4  F5  B5  b6  .   b7
)";

const char *const kDirectTimed = R"(
t    0   1   2   3   4   5   6   7   8   9   10  11  12  13  14  15  16  17  18  19  20  21  22  23  24  25  26  27  28  29
P0   F0  F1  .   f2  b2  =   f3  b3  =   .   B0  =   F4  .   B1  =   F5  f6  b6  =   f7  b7  =   .   B4  =   .   .   B5  =
P1   .   F0  f2  F1  f3  .   b2  =   B0  =   b3  =   B1  =   F4  f6  .   F5  f7  .   b6  =   B4  =   b7  =   B5  =   .   .
P2   .   f2  F0  f3  F1  .   B0  =   b2  =   B1  =   b3  =   f6  F4  .   f7  F5  .   B4  =   b6  =   B5  =   b7  =   .   .
P3   f2  f3  .   F0  B0  =   F1  B1  =   .   b2  =   f6  .   b3  =   f7  F4  B4  =   F5  B5  =   .   b6  =   .   .   b7  =
)";

TEST(Grids, DirectConcatenation) {
  expectGrid(makeCase("chimera", 4, 8), kDirect, true);
  expectGrid(makeCase("chimera", 4, 8, {1, 2, 1, 1}), kDirectTimed, false);
}

/// Figure 7b after a change: each first-stage forward of the second unit (F4,
/// F5, f6 and f7) changes places with the backward before it.
const char *const kEager = R"(
slot 0   1   2   3   4   5   6   7   8   9   10  11  12  13  14  15  16  17
P0   F0  .   F1  f2  b2  f3  b3  F4  B0  F5  B1  f6  b6  f7  b7  B4  .   B5
P1   .   F0  f2  F1  f3  b2  B0  b3  B1  F4  f6  F5  f7  b6  B4  b7  B5  .
P2   .   f2  F0  f3  F1  B0  b2  B1  b3  f6  F4  f7  F5  B4  b6  B5  b7  .
P3   f2  .   f3  F0  B0  F1  B1  f6  b2  f7  b3  F4  B4  F5  B5  b6  .   b7
)";

const char *const kEagerTimed = R"(
t    0   1   2   3   4   5   6   7   8   9   10  11  12  13  14  15  16  17  18  19  20  21  22  23  24  25  26  27  28
P0   F0  F1  .   f2  b2  =   f3  b3  =   F4  B0  =   F5  .   B1  =   f6  b6  =   f7  b7  =   .   B4  =   .   .   B5  =
P1   .   F0  f2  F1  f3  .   b2  =   B0  =   b3  =   B1  =   F4  f6  F5  f7  .   b6  =   B4  =   b7  =   B5  =   .   .
P2   .   f2  F0  f3  F1  .   B0  =   b2  =   B1  =   b3  =   f6  F4  f7  F5  .   B4  =   b6  =   B5  =   b7  =   .   .
P3   f2  f3  .   F0  B0  =   F1  B1  =   f6  b2  =   f7  .   b3  =   F4  B4  =   F5  B5  =   .   b6  =   .   .   b7  =
)";

TEST(Grids, EagerConcatenation) {
  Choice eager = chimeraWith(2, Concatenation::Eager);
  expectGrid(makeCase("chimera", 4, 8, {}, false, eager), kEager, true);
  expectGrid(makeCase("chimera", 4, 8, {1, 2, 1, 1}, false, eager), kEagerTimed,
             false);
}

/// Li and Hoefler, Figure 7d.
const char *const kDoubling = R"(
t    0   1   2   3   4   5   6   7   8   9   10  11  12  13  14  15  16  17  18  19  20  21  22  23  24  25  26
P0   F0  F1  F4  F5  f2  f3  b2  =   f6  f7  b3  =   .   B0  =   b6  =   B1  =   b7  =   B4  =   .   .   B5  =
P1   .   F0  F1  f2  f3  F4  F5  f6  f7  b2  =   B0  =   b3  =   B1  =   b6  =   B4  =   b7  =   B5  =   .   .
P2   .   f2  f3  F0  F1  f6  f7  F4  F5  B0  =   b2  =   B1  =   b3  =   B4  =   b6  =   B5  =   b7  =   .   .
P3   f2  f3  f6  f7  F0  F1  B0  =   F4  F5  B1  =   .   b2  =   B4  =   b3  =   B5  =   b6  =   .   .   b7  =
)";

TEST(Grids, FineTunedDoubling) {
  expectGrid(makeCase("chimera", 4, 8, {1, 2, 1, 1}, false,
                      chimeraWith(2, Concatenation::FineTunedDoubling)),
             kDoubling, false);
}

/// Li and Hoefler, Figure 8. The paper numbers the pipelines down 0, down 1, up
/// 0, up 1. This library numbers them down 0, up 0, down 1, up 1. So the
/// micro-batches of the second and the third pipeline are exchanged.
const char *const kFigure8 = R"(
slot 0   1   2   3   4   5   6   7   8   9   10  11  12  13  14  15  16  17
P0   F0  .   F1  f6  F2  f7  F3  f4  b4  f5  b5  B2  b6  B3  b7  B0  .   B1
P1   .   F0  f6  F1  f7  F2  f4  F3  f5  b4  B2  b5  B3  b6  B0  b7  B1  .
P2   .   f6  F0  f7  F1  f4  F2  f5  F3  B2  b4  B3  b5  B0  b6  B1  b7  .
P3   f6  .   f7  F0  f4  F1  f5  F2  B2  F3  B3  b4  B0  b5  B1  b6  .   b7
P4   F2  .   F3  f4  F0  f5  F1  f6  b6  f7  b7  B0  b4  B1  b5  B2  .   B3
P5   .   F2  f4  F3  f5  F0  f6  F1  f7  b6  B0  b7  B1  b4  B2  b5  B3  .
P6   .   f4  F2  f5  F3  f6  F0  f7  F1  B0  b6  B1  b7  B2  b4  B3  b5  .
P7   f4  .   f5  F2  f6  F3  f7  F0  B0  F1  B1  b6  B2  b7  B3  b4  .   b5
)";

TEST(Grids, FourPipelines) {
  std::string grid = kFigure8;
  for (size_t at = 0;
       (at = grid.find_first_of("FfBb", at)) != std::string::npos; at += 2)
    if (char &digit = grid[at + 1]; digit >= '2' && digit <= '5')
      digit = static_cast<char>(digit < '4' ? digit + 2 : digit - 2);
  expectGrid(makeCase("chimera", 8, 8, {}, false,
                      chimeraWith(4, Concatenation::Direct)),
             grid, true);
}

/// Compares worker, start, kind and micro-batch of every action.
void expectDense(const Case &c, const std::string &grid) {
  ASSERT_EQ(violationText(verify(c.problem, c.schedule)), "");
  EXPECT_EQ(drawnActions(c.schedule, simulate(c.problem, c.schedule)),
            readDense(grid, 1, c.problem.stages[0], false));
}

const char *const kGPipe = R"(
P0 01234567.........aabbccddeeffgghh
P1 .01234567......aabbccddeeffgghh..
P2 ..01234567...aabbccddeeffgghh....
P3 ...01234567aabbccddeeffgghh......
)";

TEST(Grids, GPipe) {
  expectDense(makeCase("gpipe", 4, 8, {1, 2, 1, 1}), kGPipe);
}

const char *const k1F1B = R"(
P0 0123......aa4bb5cc6dd7ee.ff.gg.hh
P1 .012....aa3bb4cc5dd6ee7ff.gg.hh..
P2 ..01..aa2bb3cc4dd5ee6ff7gg.hh....
P3 ...0aa1bb2cc3dd4ee5ff6gg7hh......
)";

TEST(Grids, OneForwardOneBackward) {
  expectDense(makeCase("1f1b", 4, 8, {1, 2, 1, 1}), k1F1B);
}

const char *const kChimeraEqual = R"(
P0 01.2c3da4b56g7he.f
P1 .0213cadb4657gehf.
P2 .2031acbd6475egfh.
P3 23.0a1bc6d74e5fg.h
)";

const char *const kChimeraDirect = R"(
P0 01.2cc3dd.aa4.bb56gg7hh.ee..ff
P1 .0213.ccaaddbb46.57.ggeehhff..
P2 .2031.aaccbbdd64.75.eeggffhh..
P3 23.0aa1bb.cc6.dd74ee5ff.gg..hh
)";

TEST(Grids, ChimeraDirectAsSoonAsPossible) {
  expectDense(makeCase("chimera", 4, 8), kChimeraEqual);
  expectDense(makeCase("chimera", 4, 8, {1, 2, 1, 1}), kChimeraDirect);
}

const char *const kFourPipelines = R"(
P0 01.64752c3degfha.b
P1 .06174253cedfgahb.
P2 .60712435ecfdagbh.
P3 67.02134e5fcadbg.h
P4 45.20316g7hacbde.f
P5 .42530617gahbcedf.
P6 .24356071agbhecfd.
P7 23.46570a1bgehfc.d
)";

TEST(Grids, FourPipelinesAsSoonAsPossible) {
  expectDense(makeCase("chimera", 8, 8, {}, false,
                       chimeraWith(4, Concatenation::Direct)),
              kFourPipelines);
}

/// A dense grid of another family, read as the order of one pipeline with four
/// workers and eight micro-batches.
struct Foreign {
  Problem problem;
  Schedule schedule;
  std::vector<DrawnAction> actions;

  Foreign(const std::string &grid, size_t width, int32_t chunks, StageCost cost,
          bool split, int32_t (*stageOf)(int32_t, int32_t)) {
    actions = readDense(grid, width, cost, split);
    problem.workers = 4;
    problem.stages.assign(4 * chunks, cost);
    problem.splits = split;
    Pipeline pipeline;
    pipeline.workers.resize(4 * chunks);
    for (int32_t w = 0; w < 4; ++w)
      for (int32_t chunk = 0; chunk < chunks; ++chunk)
        pipeline.workers[stageOf(w, chunk)] = w;
    for (int32_t m = 0; m < 8; ++m)
      pipeline.microBatches.push_back(m);
    problem.pipelines = {pipeline};
    schedule = orderOf(actions, 4, stageOf);
  }

  /// Checks that the scheme makes the placement and the order of the grid.
  void expectPlan(const Case &c) const {
    EXPECT_EQ(c.problem.pipelines, problem.pipelines);
    EXPECT_EQ(c.problem.splits, problem.splits);
    EXPECT_EQ(c.schedule.workers, schedule.workers);
  }

  /// Checks that the order is valid and that the simulated times equal the
  /// grid.
  Timing expectTimes() const {
    EXPECT_EQ(check(problem), "");
    EXPECT_EQ(violationText(verify(problem, schedule)), "");
    Timing timing = simulate(problem, schedule);
    std::vector<DrawnAction> timed = drawnActions(schedule, timing);
    for (size_t i = 0; i < timed.size(); ++i)
      timed[i].chunk = actions[i].chunk;
    EXPECT_EQ(timed, actions);
    return timing;
  }
};

int32_t linear(int32_t worker, int32_t) { return worker; }
int32_t looped(int32_t worker, int32_t chunk) { return 4 * chunk + worker; }
int32_t folded(int32_t worker, int32_t chunk) {
  return chunk == 0 ? worker : 7 - worker;
}

/// ZB-H1 of Qi et al., "Zero Bubble Pipeline Parallelism", ICLR'24.
const char *const kZeroBubbleH1 = R"(
P0 0123...aA4bB5cC6dD7eEfFgGhH
P1 .012..a3bA4cB5dC6eD7fEgFhGH
P2 ..01.a2b3cA4dB5eC6fD7gEhFGH
P3 ...0a1b2c3dA4eB5fC6gD7hEFGH
)";

const char *const kZeroBubbleH2 = R"(
P0 0123456aA7bBcCdDeEfFgGhH...
P1 .01234a5b6cA7dBeCfDgEhFGH..
P2 ..012a3b4c5d6eA7fBgChDEFGH.
P3 ...0a1b2c3d4e5f6gA7hBCDEFGH
)";

TEST(Grids, ZeroBubbleH1AndH2) {
  Timing h1 =
      Foreign(kZeroBubbleH1, 1, 1, {1, 2, 1, 1}, true, linear).expectTimes();
  EXPECT_EQ(h1.makespan, 27);
  EXPECT_EQ(h1.internalBubble(), 3);
  EXPECT_EQ(h1.peakActivations, std::vector<int32_t>(4, 4));
  Timing h2 =
      Foreign(kZeroBubbleH2, 1, 1, {1, 2, 1, 1}, true, linear).expectTimes();
  EXPECT_EQ(h2.makespan, 27);
  EXPECT_EQ(h2.internalBubble(), 0);
  EXPECT_EQ(h2.peakActivations[0], 7);
}

/// Interleaved 1F1B of Narayanan et al., SC'21. Worker w has stages w (chunk 0)
/// and w + 4 (chunk 1).
const char *const kInterleaved = R"(
P0 0 1 2 3 0'1'2'3'4 5 6 . . . a'a'7 b'b'. 4'c'c'5'd'd'6'a a 7'b b c c . d d . e'e'. f'f'. g'g'. h'h'e e f f g g h h
P1 . 0 1 2 3 0'1'2'3'4 . . a'a'5 b'b'6 c'c'7 d'd'4'a a 5'b b 6'c c 7'd d . e'e'. f'f'. g'g'. h'h'e e f f g g h h . .
P2 . . 0 1 2 3 0'1'2'. a'a'3'b'b'4 c'c'5 d'd'6 a a 7 b b 4'c c 5'd d 6'e'e'7'f'f'. g'g'. h'h'e e f f g g h h . . . .
P3 . . . 0 1 2 3 0'a'a'1'b'b'2'c'c'3'd'd'4 a a 5 b b 6 c c 7 d d 4'e'e'5'f'f'6'g'g'7'h'h'e e f f g g h h . . . . . .
)";

TEST(Grids, Interleaved) {
  Foreign grid(kInterleaved, 2, 2, {1, 2, 1, 1}, false, looped);
  grid.expectPlan(makeCase("interleaved-1f1b", 4, 8, {}, false, {{}, 2}));
  Timing timing = grid.expectTimes();
  EXPECT_EQ(timing.makespan, 57);
  EXPECT_EQ(timing.flushBubble(), 9);
  EXPECT_EQ(timing.peakActivations, (std::vector<int32_t>{11, 9, 7, 5}));
  // A message takes a quarter of the forwards of both chunks, or as long as
  // both.
  for (auto [alpha, bubble] : {std::pair{1, 32}, {4, 88}}) {
    grid.problem.stages.assign(8, {2, 4, 1, 1});
    grid.problem.link.alpha = alpha;
    EXPECT_EQ(simulate(grid.problem, grid.schedule).flushBubble(), bubble);
  }
}

/// ZB-V. Stages 0 to 3 are on workers 0 to 3, and stages 4 to 7 on workers 3 to
/// 0. So stages 3 and 4 are on the same worker.
const char *const kZeroBubbleV = R"(
P0 0 1 2 3 4 5 6 0'a'A'1'b'B'2'c'C'3'd'D'7 a A 4'e'E'b B 5'f'F'c C 6'g'G'd D 7'h'H'e E f F g G h H . . .
P1 . 0 1 2 3 4 0'5 1'a'A'2'b'B'3'c'C'6 a A 4'd'D'7 b B 5'e'E'c C 6'f'F'd D 7'g'G'e h'f E g F h G H'H . .
P2 . . 0 1 2 0'3 1'4 2'a'A'3'b'B'5 a A 4'c'C'6 b B 5'd'D'7 c C 6'e'E'd D 7'f'F'e g'f h'g E h F G'H'G H .
P3 . . . 0 0'1 1'2 2'3 3'a'A'4 a A 4'b'B'5 b B 5'c'C'6 c C 6'd'D'7 d D 7'e'E'e f'f g'g h'h E F'G'H'F G H
)";

TEST(Grids, ZeroBubbleV) {
  Foreign grid(kZeroBubbleV, 2, 2, {1, 2, 1, 1}, true, folded);
  grid.expectPlan(makeCase("zb-v", 4, 8, {}, false, {{}, 2}));
  Timing timing = grid.expectTimes();
  EXPECT_EQ(timing.makespan, 51);
  EXPECT_EQ(timing.internalBubble(), 0);
  EXPECT_EQ(timing.peakActivations, std::vector<int32_t>(4, 8));
  // Each stash has 1 byte. With memory caps of 8 bytes, 8 stashes fit.
  grid.problem.bytes.assign(8, {0, 0, 1, 1, 0});
  grid.problem.memoryCaps.assign(4, 8);
  EXPECT_EQ(violationText(verify(grid.problem, grid.schedule)), "");
  grid.problem.memoryCaps.assign(4, 7);
  EXPECT_EQ(verify(grid.problem, grid.schedule).size(), 4u);
}

} // namespace
} // namespace chimera::schedule
