//===- DrawingTest.cpp - The families' drawings are right -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each family of schedules has a drawing of its grid above the function that
// makes it:
//
//   D=3, N=3, equal times:
//
//     t    0  1  2 ...
//     P0   F0 F1 F2 ...
//
// These tests read the drawings from the sources of the families, and compare
// every cell with the schedule that the family makes. So they also test
// renderGrid. The other tests are about text and the notation of times.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/simulate/Simulate.h"
#include "compiler/schedule/text/Magnitude.h"
#include "compiler/schedule/timeline/Grid.h"
#include "compiler/schedule/timeline/Text.h"
#include "compiler/schedule/timeline/Timeline.h"
#include "test/compiler/schedule/Grids.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace chimera::schedule {
namespace {

std::vector<std::string> wordsOf(const std::string &line) {
  std::istringstream stream(line);
  std::vector<std::string> result;
  for (std::string word; stream >> word;)
    result.push_back(word);
  return result;
}

struct Drawing {
  int workers = 0, microBatches = 0;
  Cells cells;

  bool inSlots() const { return cells.front().front() == "slot"; }
};

/// Reads the first drawing of a source file.
Drawing readDrawing(const std::string &file) {
  std::ifstream in(std::string(CHIMERA_FAMILIES) + "/" + file);
  Drawing drawing;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("//", 0) != 0) {
      if (!drawing.cells.empty())
        break;
      continue;
    }
    line.erase(0, 2);
    if (size_t at = line.find("D="); at != std::string::npos)
      std::sscanf(line.c_str() + at, "D=%d, N=%d", &drawing.workers,
                  &drawing.microBatches);
    std::vector<std::string> row = wordsOf(line);
    bool head = !row.empty() && (row[0] == "t" || row[0] == "slot");
    bool worker = !drawing.cells.empty() && !row.empty() && row[0][0] == 'P';
    if (head || worker)
      drawing.cells.push_back(row);
    else if (!drawing.cells.empty())
      break;
  }
  return drawing;
}

void expectTrue(const std::string &file, const std::string &scheme,
                int32_t chunks = 1) {
  Drawing drawing = readDrawing(file);
  ASSERT_EQ(drawing.cells.size(), drawing.workers + 1u) << file;
  Case c = makeCase(scheme, drawing.workers, drawing.microBatches, {}, false,
                    {{}, chunks});
  Timing timing = drawing.inSlots() ? slotTiming(c.problem, c.schedule)
                                    : simulate(c.problem, c.schedule);
  EXPECT_EQ(cellsOf(gridOf(c, timing, drawing.inSlots())), drawing.cells)
      << file;
}

TEST(Drawing, OfChimera) { expectTrue("Chimera.cpp", "chimera"); }
TEST(Drawing, OfGems) { expectTrue("Gems.cpp", "gems"); }
TEST(Drawing, OfGPipe) { expectTrue("GPipe.cpp", "gpipe"); }
TEST(Drawing, OfInterleaved1F1B) {
  expectTrue("Interleaved1F1B.cpp", "interleaved-1f1b", 2);
}
TEST(Drawing, OfZBV) { expectTrue("ZBV.cpp", "zb-v", 2); }
TEST(Drawing, OfPipeDream) {
  expectTrue("PipeDream.cpp", "pipedream");
  expectTrue("PipeDream.cpp", "pipedream-2bw");
}
TEST(Drawing, OfOneForwardOneBackward) {
  expectTrue("OneForwardOneBackward.cpp", "1f1b");
}

/// Micro-batches with two digits make all columns wider. `=` continues an
/// action.
TEST(Timeline, AlignsItsColumns) {
  Case c = makeCase("gpipe", 1, 11, {1, 2, 1, 1});
  Timing timing = simulate(c.problem, c.schedule);
  std::string grid = gridOf(c, timing, false);
  EXPECT_EQ(grid.substr(0, 14), "t    0   1   2");
  EXPECT_NE(grid.find("\nP0   F0  F1  F2 "), std::string::npos);
  EXPECT_NE(grid.find(" F10 B0  =   B1 "), std::string::npos);
  EXPECT_NE(grid.find(" B10 =\n"), std::string::npos);
}

/// Each line is as long as the width allows. Every block repeats the header.
TEST(Timeline, FoldsGridsThatAreTooWide) {
  Case c = makeCase("gpipe", 1, 3, {1, 2, 1, 1});
  Timing timing = simulate(c.problem, c.schedule);
  auto grid = [&](size_t width) { return gridOf(c, timing, false, width); };
  std::string whole = "t    0  1  2  3  4  5  6  7  8\n"
                      "P0   F0 F1 F2 B0 =  B1 =  B2 =\n";
  EXPECT_EQ(grid(0), whole);
  EXPECT_EQ(grid(31), whole);
  EXPECT_EQ(grid(30), "t    0  1  2  3  4  5  6  7\n"
                      "P0   F0 F1 F2 B0 =  B1 =  B2\n"
                      "\n"
                      "t    8\n"
                      "P0   =\n");
  EXPECT_EQ(grid(18), "t    0  1  2  3\n"
                      "P0   F0 F1 F2 B0\n"
                      "\n"
                      "t    4  5  6  7\n"
                      "P0   =  B1 =  B2\n"
                      "\n"
                      "t    8\n"
                      "P0   =\n");
  // A block has at least one column.
  EXPECT_EQ(grid(1).substr(0, 23), "t    0\nP0   F0\n\nt    1\n");
}

/// Instead of a grid that is too large to read, a line says how else to see the
/// schedule.
TEST(Timeline, PrintsNoGridOfMoreThanAThousandColumns) {
  auto textOf = [](int64_t backward, bool areSlots = false) {
    Case c = makeCase("gpipe", 1, 1, {1, backward, 1, 1});
    Timing timing = simulate(c.problem, c.schedule);
    Timeline timeline{"p", "title", c.problem, c.schedule, timing, areSlots};
    return renderText({&timeline, 1});
  };
  EXPECT_NE(textOf(999).find("P0   F0"), std::string::npos);
  EXPECT_EQ(textOf(1000).find("P0   F0"), std::string::npos);
  EXPECT_EQ(
      textOf(2999).find(
          "title\n"
          "(no grid: it would have 3000 columns of 1, for the shortest action, "
          "and at most 250 are drawn: write a picture or a trace)\n"
          "makespan 3000 ("),
      0u);
  EXPECT_NE(textOf(2999, /*areSlots=*/true)
                .find("(no grid: it would have 3000 slots, and at most 1000 "
                      "are drawn: write a picture or a trace)\n"),
            std::string::npos);
}

/// A time with at most four digits before the point keeps up to ten digits. A
/// longer time is rounded to four digits in a larger unit. In the largest unit
/// it keeps all digits before the point.
TEST(Timeline, WritesLargeTimesShort) {
  auto unit = [](const char *name, int64_t perUnit = 1) {
    return TimeScale{findTimeUnit(name), perUnit};
  };
  EXPECT_EQ(shortTime(0, unit("none")), "0");
  EXPECT_EQ(shortTime(22.5, unit("none")), "22.5");
  EXPECT_EQ(shortTime(9999, unit("none")), "9999");
  EXPECT_EQ(shortTime(10000, unit("none")), "10 × 10³");
  EXPECT_EQ(shortTime(123456789, unit("none")), "123.5 × 10⁶");
  EXPECT_EQ(shortTime(4e18, unit("none")), "4 × 10¹⁸");
  EXPECT_EQ(shortTime(0, unit("ns")), "0 ns");
  EXPECT_EQ(shortTime(9999, unit("us")), "9999 us");
  EXPECT_EQ(shortTime(999999, unit("ns")), "1 ms");
  EXPECT_EQ(shortTime(39e9, unit("ns")), "39 s");
  // There is no unit above seconds.
  EXPECT_EQ(shortTime(1.23456e15, unit("ns")), "1234560 s");
  // Several ticks per unit.
  EXPECT_EQ(shortTime(15, unit("us", 2)), "7.5 us");
  EXPECT_EQ(shortTime(2469, unit("none", 20000)), "0.12345");
  EXPECT_EQ(shortTime(1500015, unit("us", 2)), "750 ms");
}

TEST(Timeline, WritesTimesExactly) {
  EXPECT_EQ(decimalNumber(0, 8), "0");
  EXPECT_EQ(decimalNumber(9, 8), "1.125");
  EXPECT_EQ(decimalNumber(16, 8), "2");
  EXPECT_EQ(decimalNumber(4611686018427387903, 1000000000000000000),
            "4.611686018427387903");
  EXPECT_EQ(decimalNumber(1, 2000000000000000000), "0.0000000000000000005");
  EXPECT_EQ(decimalTime(80010, {findTimeUnit("ns"), 1}), "80010 ns");
  EXPECT_EQ(decimalTime(15, {findTimeUnit("none"), 2}), "7.5");
}

/// Tests a scale with one tick per unit and a scale with two.
TEST(Timeline, SaysTheUnitOfItsTimes) {
  Case c = makeCase("gpipe", 2, 1, {1, 2, 1, 1});
  Timing timing = simulate(c.problem, c.schedule);
  auto textOf = [&](const TimeScale &scale) {
    Timeline timeline{"p",    "title", c.problem, c.schedule,
                      timing, false,   scale};
    return renderText({&timeline, 1});
  };
  EXPECT_EQ(textOf({findTimeUnit("ns"), 1}),
            "title\n"
            "t    0  1  2  3  4  5\n"
            "P0   F0 .  .  .  B0 =\n"
            "P1   .  F0 B0 =  .  .\n"
            "makespan 6 ns (forward 1 ns, backward 2 ns, p2p 0 ns)\n"
            "bubble 50.0 % of the makespan; idle per worker: 3 3 ns\n"
            "peak activations per worker: 1 1\n");
  EXPECT_EQ(textOf({findTimeUnit("us"), 2}),
            "title\n"
            "t    0   0.5 1   1.5 2   2.5\n"
            "P0   F0  .   .   .   B0  =\n"
            "P1   .   F0  B0  =   .   .\n"
            "makespan 3 us (forward 0.5 us, backward 1 us, p2p 0 us)\n"
            "bubble 50.0 % of the makespan; idle per worker: 1.5 1.5 us\n"
            "peak activations per worker: 1 1\n");
}

/// If steps overlap, the drawing has two steps. The time of one step comes
/// after their summary.
TEST(Timeline, HasTheStepTimeIfStepsOverlap) {
  Case c = makeCase("pipedream", 4, 5, {1, 2, 1, 1, 3});
  c.problem.link.alpha = 1;
  Timing timing = simulate(c.problem, c.schedule);
  Timeline timeline{"p", "title", c.problem, c.schedule, timing};
  std::string text = renderText({&timeline, 1});
  EXPECT_TRUE(text.ends_with("\npeak activations per worker: 4 3 2 1\n2 steps, "
                             "which overlap; in the steady state one takes "
                             "22.5, bubble 33.3 %\n"))
      << text;
  EXPECT_EQ(describeSteps(c.problem, c.schedule, {findTimeUnit("us"), 10}),
            "2 steps, which overlap; in the steady state one takes 2.25 us, "
            "bubble 33.3 %");
  // A period of 27 × 10¹² is written with all digits.
  Case large = makeCase("pipedream", 3, 3, {3000000000000, 6000000000000});
  EXPECT_EQ(
      describeSteps(large.problem, large.schedule, {findTimeUnit("ns"), 2}),
      "2 steps, which overlap; in the steady state one takes "
      "13500000000000 ns, bubble 0.0 %");
  c.problem.recompute.assign(4, Recompute::Fused);
  EXPECT_EQ(describeTimes(c.problem),
            "forward 1, backward 2, recompute 3, p2p 1");
}

/// The stages of a worker are numbered per pipeline, in the order of the
/// stages.
TEST(Timeline, NumbersChunks) {
  auto numbersOf = [](const Case &c, int32_t pipeline = 0) {
    const Chunks chunks(c.problem);
    std::vector<int32_t> numbers;
    for (int32_t stage = 0; stage < std::ssize(c.problem.stages); ++stage) {
      Action action = c.schedule.workers[0][0];
      action.pipeline = pipeline;
      action.stage = stage;
      numbers.push_back(chunks.numberOf(action));
    }
    return join(numbers);
  };
  EXPECT_EQ(numbersOf(makeCase("1f1b", 4, 4)), "0 0 0 0");
  EXPECT_EQ(numbersOf(makeCase("chimera", 4, 4), 1), "0 0 0 0");
  EXPECT_EQ(numbersOf(makeCase("zb-v", 2, 4, {1, 2, 1, 1}, false, {{}, 2})),
            "0 0 1 1");
  EXPECT_EQ(numbersOf(makeCase("interleaved-1f1b", 2, 2, {1, 2, 1, 1}, false,
                               {{}, 3})),
            "0 0 1 1 2 2");
  // Each pipeline has its own numbers, and a placement may be in any order.
  Case c = makeCase("chimera", 4, 4);
  c.problem.workers = 3;
  c.problem.pipelines[0].workers = {0, 1, 0, 2};
  c.problem.pipelines[1].workers = {2, 2, 2, 0};
  EXPECT_EQ(numbersOf(c), "0 0 1 0");
  EXPECT_EQ(numbersOf(c, 1), "0 1 2 0");
}

/// The marks that not every grid has are explained, and only those that occur.
TEST(Timeline, ExplainsItsMarks) {
  auto marksOf = [](const Case &c) {
    Timing timing = simulate(c.problem, c.schedule);
    return describeMarks({"p", "title", c.problem, c.schedule, timing});
  };
  EXPECT_EQ(marksOf(makeCase("1f1b", 4, 4)), "");
  EXPECT_EQ(marksOf(makeCase("1f1b", 2, 2, {1, 3, 2, 1}, true)),
            "I: input gradient; W: weight gradient");
  EXPECT_EQ(marksOf(makeCase("chimera", 4, 4)),
            "small letters: the pipeline whose activations go up the workers");
  EXPECT_EQ(marksOf(makeCase("zb-v", 4, 8, {1, 2, 1, 1}, false, {{}, 2})),
            "I: input gradient; W: weight gradient; ': on the worker's second "
            "stage");
  Case changed = makeCase("chimera", 2, 2);
  Timing before = simulate(changed.problem, changed.schedule);
  changed.schedule.workers[0][0].microBatches = 2;
  changed.schedule.workers[0][1].parts = 2;
  const std::string marks =
      describeMarks({"p", "title", changed.problem, changed.schedule, before});
  EXPECT_TRUE(marks.ends_with("; F01: of micro-batches 0 to 1; f1a: part 1 of "
                              "2"))
      << marks;
  Case c = makeCase("gpipe", 1, 1);
  Timing timing = simulate(c.problem, c.schedule);
  SyncAndUpdate after;
  after.work = {{{{3, 5}, 0, std::nullopt},
                 {{5, 6}, std::nullopt, std::nullopt},
                 {{6, 7}, std::nullopt, std::nullopt, /*isNorm=*/true},
                 {{7, 8}, 0, 0}}};
  after.ends = {8};
  Timeline timeline{"p", "title", c.problem, c.schedule, timing};
  timeline.syncAndUpdate = &after;
  EXPECT_EQ(describeMarks(timeline),
            "A0: wait for the all-reduce of stage 0; A: wait for the "
            "all-reduce of tied weights; N: wait for the all-reduce of the "
            "norm; U0: update of stage 0");
}

TEST(Timeline, SaysWhatItsNumbersHoldFor) {
  Case c = makeCase("gpipe", 2, 2, {1, 2, 1, 1});
  c.problem.link.alpha = 1;
  EXPECT_EQ(renderSummary(c.problem, simulate(c.problem, c.schedule), false),
            "makespan 11 (forward 1, backward 2, p2p 1)\n"
            "bubble 45.5 % of the makespan; idle per worker: 5 5\n"
            "peak activations per worker: 2 2\n");
  Case split = makeCase("1f1b", 2, 2, {1, 3, 2, 1}, true);
  EXPECT_EQ(renderSummary(split.problem,
                          simulate(split.problem, split.schedule), false),
            "makespan 11 (forward 1, input gradient 2, weight gradient 1, p2p "
            "0)\n"
            "bubble 27.3 % of the makespan; idle per worker: 3 3\n"
            "peak activations per worker: 2 1\n");
  Case slots = makeCase("chimera", 4, 4);
  EXPECT_EQ(renderSummary(slots.problem,
                          slotTiming(slots.problem, slots.schedule), true),
            "makespan 10 (one slot each)\n"
            "bubble 20.0 % of the makespan; idle per worker: 2 2 2 2\n"
            "peak activations per worker: 3 4 4 3\n");
}

} // namespace
} // namespace chimera::schedule
