//===- TorchWriterTest.cpp - Writes schedule files of PyTorch -------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/formats/TorchWriter.h"
#include "compiler/schedule/MakePlan.h"
#include "compiler/schedule/families/Registry.h"
#include "compiler/schedule/model/Recompute.h"
#include "test/compiler/schedule/Schedules.h"
#include "test/compiler/schedule/formats/TorchFiles.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace chimera::schedule::torch {
namespace {

/// Whether each stage of `problem` is on one worker.
bool isOnOneWorker(const Problem &problem) {
  return std::ranges::all_of(problem.pipelines, [&](const Pipeline &each) {
    return each.workers == problem.pipelines[0].workers;
  });
}

void expectTheSame(const Case &c, const std::string &text) {
  const File file = readText(text);
  EXPECT_FALSE(file.isLowered());
  ASSERT_EQ(file.ranks.size(), c.schedule.workers.size());
  for (size_t rank = 0; rank < file.ranks.size(); ++rank) {
    const std::vector<schedule::Action> &actions = c.schedule.workers[rank];
    ASSERT_EQ(file.ranks[rank].size(), actions.size());
    for (size_t i = 0; i < actions.size(); ++i) {
      const Cell &cell = file.ranks[rank][i];
      const std::string letter(1, "FBIW"[static_cast<size_t>(actions[i].kind)]);
      EXPECT_EQ(nameOf(cell), std::to_string(actions[i].stage) + letter +
                                  std::to_string(actions[i].microBatch));
      if (c.schedule.hasSlots())
        EXPECT_EQ(cell.number, c.schedule.slots[rank][i] + 1);
      else
        EXPECT_EQ(cell.number, i + 1);
    }
  }
}

TEST(TorchWriter, WritesPairsAsOneCell) {
  Case c = makeCase("1f1b", 2, 3);
  c.schedule.slots.clear();
  c.schedule.workers[0][1].joinedWithNext = true;
  std::string error;
  EXPECT_EQ(write(c.problem, c.schedule, error),
            "0F0,(0F1;0B0)OVERLAP_F_B,0F2,0B1,0B2\r\n"
            "1F0,1B0,1F1,1B1,1F2,1B2\r\n");
}

TEST(TorchWriter, WritesWhatFilesOfTorchCanDescribeAndRefusesTheRest) {
  size_t written = 0, refused = 0;
  for (const Scheme &scheme : schemes())
    for (int32_t d : {1, 2, 4})
      for (int32_t n : {d, 2 * d + 1})
        for (const Choice &choice : choices(scheme, d))
          for (bool split : {false, true}) {
            if (!canPlan(scheme, d, n, choice))
              continue;
            SCOPED_TRACE(nameOf(scheme, d, n, choice));
            const StageCost cost{2, 4, 2, 2};
            if (!makePlan(scheme, requestFor(scheme, d, n, choice, cost, split))
                     .plan)
              continue;
            Case c = makeCase(scheme.name, d, n, cost, split, choice);
            std::string error;
            const std::optional<std::string> text =
                write(c.problem, c.schedule, error);
            const auto &pipelines = c.problem.pipelines;
            const bool canWrite =
                c.problem.updates == Updates::Flush &&
                isOnOneWorker(c.problem) && maxParts(pipelines) == 1 &&
                std::ranges::all_of(pipelines, [](const Pipeline &each) {
                  return std::ranges::count(each.forwards, 1) ==
                         std::ssize(each.forwards);
                });
            ASSERT_EQ(text.has_value(), canWrite) << error;
            EXPECT_EQ(error.empty(), canWrite);
            ++(text ? written : refused);
            if (!text)
              continue;
            expectTheSame(c, *text);
            c.problem.recompute.assign(c.problem.stages.size(),
                                       Recompute::Early);
            EXPECT_FALSE(write(c.problem,
                               insertRecompute(c.problem, c.schedule), error));
            EXPECT_NE(error.find("got a recompute"), std::string::npos);
          }
  EXPECT_GT(written, 20u);
  EXPECT_GT(refused, 20u);
}

TEST(TorchWriter, RefusesJointWeightGradients) {
  Case c = makeCase("gpipe", 1, 1, {}, /*split=*/true);
  std::string error;
  EXPECT_TRUE(write(c.problem, c.schedule, error)) << error;
  c.schedule.workers[0].back().joinedWithNext = true;
  EXPECT_FALSE(write(c.problem, c.schedule, error));
  EXPECT_NE(error.find("got a joint weight gradient"), std::string::npos)
      << error;
}

TEST(TorchWriter, IdleSlotsAreBlankCells) {
  const Case c = makeCase("1f1b", 2, 2);
  Schedule withSlots = c.schedule;
  withSlots.slots = {{0, 1, 3, 5}, {1, 2, 3, 4}};
  std::string error;
  EXPECT_EQ(write(c.problem, withSlots, error),
            "0F0,0F1,,0B0,,0B1\r\n,1F0,1B0,1F1,1B1\r\n");
  EXPECT_EQ(write(c.problem, c.schedule, error),
            "0F0,0F1,0B0,0B1\r\n1F0,1B0,1F1,1B1\r\n");
}

} // namespace
} // namespace chimera::schedule::torch
