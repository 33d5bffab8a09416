//===- DrawingTest.cpp - The families' drawings are true ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each family draws its grid above the function that makes it:
//
//   D=3, N=3, equal times:
//
//     t    0  1  2 ...
//     P0   F0 F1 F2 ...
//
// These tests read the drawings from the sources and hold them, cell by cell,
// against what the family makes; and renderGrid and renderSummary by that.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Timeline.h"
#include "test/compiler/schedule/Grids.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace chimera::schedule {
namespace {

std::vector<std::string> words(const std::string &line) {
  std::istringstream stream(line);
  std::vector<std::string> result;
  for (std::string word; stream >> word;)
    result.push_back(word);
  return result;
}

struct Drawing {
  int stages = 0, microBatches = 0;
  Cells cells;

  bool inSlots() const { return cells.front().front() == "slot"; }
};

/// The first drawing of a source file.
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
      std::sscanf(line.c_str() + at, "D=%d, N=%d", &drawing.stages,
                  &drawing.microBatches);
    std::vector<std::string> row = words(line);
    bool head = !row.empty() && (row[0] == "t" || row[0] == "slot");
    bool worker = !drawing.cells.empty() && !row.empty() && row[0][0] == 'P';
    if (head || worker)
      drawing.cells.push_back(row);
    else if (!drawing.cells.empty())
      break;
  }
  return drawing;
}

void expectTrue(const std::string &file, const std::string &scheme) {
  Drawing drawing = readDrawing(file);
  ASSERT_EQ(drawing.cells.size(), drawing.stages + 1u) << file;
  Case c = makeCase(scheme, drawing.stages, drawing.microBatches);
  Timing timing = drawing.inSlots() ? slotTiming(c.problem, c.schedule)
                                    : simulate(c.problem, c.schedule);
  EXPECT_EQ(
      cellsOf(renderGrid(c.problem, c.schedule, timing, drawing.inSlots())),
      drawing.cells)
      << file;
}

TEST(Drawing, OfChimera) { expectTrue("Chimera.cpp", "chimera"); }
TEST(Drawing, OfGems) { expectTrue("Gems.cpp", "gems"); }
TEST(Drawing, OfGPipe) { expectTrue("GPipe.cpp", "gpipe"); }
TEST(Drawing, OfPipeDream) {
  expectTrue("PipeDream.cpp", "pipedream");
  expectTrue("PipeDream.cpp", "pipedream-2bw");
}
TEST(Drawing, OfOneForwardOneBackward) {
  expectTrue("OneForwardOneBackward.cpp", "1f1b");
}

/// Two-digit micro-batches widen the columns; `=` continues an action.
TEST(Timeline, AlignsItsColumns) {
  Case c = makeCase("gpipe", 1, 11, {1, 2, 1, 1});
  Timing timing = simulate(c.problem, c.schedule);
  std::string grid = renderGrid(c.problem, c.schedule, timing, false);
  EXPECT_EQ(grid.substr(0, 14), "t    0   1   2");
  EXPECT_NE(grid.find("\nP0   F0  F1  F2 "), std::string::npos);
  EXPECT_NE(grid.find(" F10 B0  =   B1 "), std::string::npos);
  EXPECT_NE(grid.find(" B10 =\n"), std::string::npos);
}

/// Behind the two steps' summary.
TEST(Timeline, SaysWhatAStepTakesWhereStepsOverlap) {
  Case c = makeCase("pipedream", 4, 5, {1, 2, 1, 1, 3});
  c.problem.link.alpha = 1;
  Timing timing = simulate(c.problem, c.schedule);
  Timeline timeline{"p", "title", c.problem, c.schedule, timing};
  std::string text = renderText({&timeline, 1});
  EXPECT_TRUE(text.ends_with("\npeak activations per worker: 4 3 2 1\n2 steps, "
                             "which overlap; in the steady state one takes "
                             "22.5, bubble 33.3 %\n"))
      << text;
  c.problem.recompute.assign(4, Recompute::Fused);
  EXPECT_EQ(describeTimes(c.problem),
            "forward 1, backward 2, recompute 3, p2p 1");
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
