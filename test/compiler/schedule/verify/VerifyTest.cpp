//===- VerifyTest.cpp - A broken schedule for each constraint -------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

namespace chimera::schedule {
namespace {

using Constraint = Violation::Constraint;

bool has(const Case &c, Constraint constraint, const std::string &message) {
  for (const Violation &violation : verify(c.problem, c.schedule))
    if (violation.constraint == constraint && violation.message == message)
      return true;
  ADD_FAILURE() << "expected: " << message
                << "\ngot: " << violationText(verify(c.problem, c.schedule));
  return false;
}

TEST(Verify, UnknownAction) {
  // Each of these actions is wrong: another pipeline than that of its
  // micro-batch, an index out of range, a range of two or of no micro-batches
  // instead of one, or a part of a backward that is not cut.
  for (Action action :
       {Action{Kind::Forward, 1, 0, 0}, Action{Kind::Forward, 0, 4, 0},
        Action{Kind::Forward, 0, 0, 4}, Action{Kind::Forward, 0, -1, 0},
        Action{Kind::Forward, 0, 0, 0, 2}, Action{Kind::Forward, 0, 0, 0, 0},
        Action{Kind::Backward, 0, 0, 0, 1, 0, 2},
        Action{Kind::Backward, 0, 0, 0, 1, 1, 1}}) {
    Case c = makeCase("chimera", 4, 4);
    c.schedule.workers[0][0] = action;
    EXPECT_TRUE(has(c, Constraint::UnknownAction,
                    "worker 0: unknown action " + describe(action)));
  }
  for (auto [kind, why] :
       {std::pair(Kind::InputGradient, ": this backward is whole, so write B"),
        std::pair(Kind::WeightGradient, ": this backward is whole, so write B"),
        std::pair(Kind::Recompute, ": this stage is not recomputed")}) {
    Case c = makeCase("chimera", 4, 4);
    Action &action = c.schedule.workers[0][0] = {kind, 0, 0, 0};
    EXPECT_TRUE(has(c, Constraint::UnknownAction,
                    "worker 0: unknown action " + describe(action) + why));
  }
}

TEST(Verify, Missing) {
  Case c = makeCase("gpipe", 2, 2);
  c.schedule.workers[1].pop_back();
  EXPECT_TRUE(has(c, Constraint::Missing,
                  "backward of stage 1, micro-batch 1 is missing"));
  EXPECT_EQ(verify(c.problem, c.schedule).size(), 1u);
}

TEST(Verify, Duplicate) {
  Case c = makeCase("gpipe", 2, 2);
  c.schedule.workers[1].push_back(c.schedule.workers[1].back());
  EXPECT_TRUE(has(c, Constraint::Duplicate,
                  "worker 1: backward of stage 1, micro-batch 1 is in the "
                  "order twice"));
  EXPECT_EQ(verify(c.problem, c.schedule).size(), 1u);
}

TEST(Verify, Placement) {
  Case c = makeCase("gpipe", 2, 2);
  std::swap(c.schedule.workers[0], c.schedule.workers[1]);
  EXPECT_TRUE(
      has(c, Constraint::Placement,
          "worker 1: forward of stage 0, micro-batch 0 belongs on worker 0"));
}

TEST(Verify, PlacementNeedsAnOrderForEveryWorker) {
  Case c = makeCase("gpipe", 2, 2);
  c.schedule.workers.emplace_back();
  EXPECT_TRUE(
      has(c, Constraint::Placement, "expected orders for 2 workers, got 3"));
}

TEST(Verify, OrderOfABackward) {
  Case c = makeCase("gpipe", 1, 1);
  std::swap(c.schedule.workers[0][0], c.schedule.workers[0][1]);
  EXPECT_TRUE(has(c, Constraint::Order,
                  "worker 0: backward of stage 0, micro-batch 0 must come "
                  "after the forward that it depends on"));
}

TEST(Verify, OrderOfAWeightGradient) {
  Case c = makeCase("gpipe", 1, 1, {}, true);
  std::swap(c.schedule.workers[0][1], c.schedule.workers[0][2]);
  EXPECT_TRUE(
      has(c, Constraint::Order,
          "worker 0: weight_gradient of stage 0, micro-batch 0 must come "
          "after the input_gradient that it depends on"));
}

/// Stages 0 and 1 are on one worker. The forward of stage 1 needs the forward
/// of stage 0. The backward of stage 0 needs the backward of stage 1.
TEST(Verify, OrderOfStagesOnOneWorker) {
  Case c = makeCase("gpipe", 2, 1);
  c.problem.workers = 1;
  c.problem.pipelines[0].workers = {0, 0};
  c.schedule.workers = {{{Kind::Forward, 0, 1, 0},
                         {Kind::Forward, 0, 0, 0},
                         {Kind::Backward, 0, 0, 0},
                         {Kind::Backward, 0, 1, 0}}};
  EXPECT_EQ(violationText(verify(c.problem, c.schedule)),
            "worker 0: forward of stage 1, micro-batch 0 must come after the "
            "forward of stage 0 that it depends on\n"
            "worker 0: backward of stage 0, micro-batch 0 must come after "
            "the backward of stage 1 that it depends on\n");
}

TEST(Verify, Memory) {
  Case c = makeCase("1f1b", 2, 2);
  c.problem.bytes = {{1, 0, 10, 10, 0}, {1, 0, 10, 10, 0}};
  c.problem.memoryCaps = {22, 12};
  EXPECT_EQ(violationText(verify(c.problem, c.schedule)), "");
  c.problem.memoryCaps = {21, 1};
  EXPECT_EQ(violationText(verify(c.problem, c.schedule)),
            "worker 0 needs 22 bytes at backward of stage 0, micro-batch 0, "
            "more than its cap of 21\n"
            "worker 1 needs 12 bytes at backward of stage 1, micro-batch 0, "
            "more than its cap of 1\n");
  c.problem.bytes[1].weights = 2;
  c.schedule.workers[1].clear();
  EXPECT_TRUE(has(c, Constraint::Memory,
                  "worker 1 needs 2 bytes before its first action, more than "
                  "its cap of 1"));
}

TEST(Verify, Deadlock) {
  // Worker 0 waits for the backward of micro-batch 0 before it runs the forward
  // of micro-batch 1. Worker 1 waits for the forward of micro-batch 1 before it
  // runs the backward of micro-batch 0.
  Case c = makeCase("gpipe", 2, 2);
  std::swap(c.schedule.workers[0][1], c.schedule.workers[0][2]);
  EXPECT_TRUE(has(c, Constraint::Deadlock,
                  "deadlock: worker 0 cannot run backward of stage 0, "
                  "micro-batch 0, because it waits for backward of stage 1, "
                  "micro-batch 0, which worker 1 cannot run before forward of "
                  "stage 1, micro-batch 1"));
  EXPECT_TRUE(has(c, Constraint::Deadlock,
                  "deadlock: worker 1 cannot run forward of stage 1, "
                  "micro-batch 1, because it waits for forward of stage 0, "
                  "micro-batch 1, which worker 0 cannot run before backward of "
                  "stage 0, micro-batch 0"));
  // The notes say where the awaited actions are: B0 on worker 1 and F1 on
  // worker 0.
  const std::vector<Violation> all = verify(c.problem, c.schedule);
  ASSERT_EQ(all.size(), 2u) << violationText(all);
  ASSERT_EQ(all[0].notes.size(), 1u);
  EXPECT_EQ(all[0].notes[0].message,
            "backward of stage 1, micro-batch 0 is here");
  EXPECT_EQ(all[0].notes[0].worker, 1);
  EXPECT_EQ(all[0].notes[0].index, 2);
  ASSERT_EQ(all[1].notes.size(), 1u);
  EXPECT_EQ(all[1].notes[0].message,
            "forward of stage 0, micro-batch 1 is here");
  EXPECT_EQ(all[1].notes[0].worker, 0);
  EXPECT_EQ(all[1].notes[0].index, 2);
}

/// In a pipeline of 64 workers, two neighbours wait for each other, and all
/// other workers wait for these two. The report first names the two neighbours,
/// even if there are other errors. A note says how many other workers wait.
TEST(Verify, DeadlockNamesTheShortestCycleAndCountsWhoWaitsForIt) {
  Case c = makeCase("1f1b", 64, 64);
  std::vector<Action> &order = c.schedule.workers[40];
  // Move the first backward directly after the first forward. Worker 41 must
  // run many more forwards before that backward can run.
  auto first = std::ranges::find(order, Kind::Backward, &Action::kind);
  std::rotate(order.begin() + 1, first, first + 1);
  c.schedule.workers[63].pop_back(); // and one action is missing
  const std::vector<Violation> all = verify(c.problem, c.schedule);
  ASSERT_EQ(all.size(), 3u) << violationText(all);
  for (int32_t k : {0, 1}) {
    EXPECT_EQ(all[k].constraint, Constraint::Deadlock);
    EXPECT_EQ(all[k].worker, 40 + k);
    EXPECT_NE(all[k].message.find("which worker " + std::to_string(41 - k) +
                                  " cannot run"),
              std::string::npos)
        << all[k].message;
  }
  EXPECT_EQ(all[0].notes.size(), 1u);
  ASSERT_EQ(all[1].notes.size(), 2u);
  EXPECT_EQ(all[1].notes[0].message, "62 more workers wait for these workers");
  EXPECT_EQ(all[1].notes[0].index, -1);
  EXPECT_EQ(all[2].constraint, Constraint::Missing);
}

/// There are two cycles: workers 3 and 4 wait for each other, and workers 0, 2
/// and 1. Their placement is made by hand. Each cycle arises because its first
/// worker runs a forward of a later stage before its forward of stage 0.
TEST(Verify, DeadlockReportsEveryCycleAndTheShortestFirst) {
  Case c;
  c.problem.workers = 5;
  c.problem.stages.resize(6);
  c.problem.pipelines = {{false, {0, 1, 2, 0, 1, 2}, {0}},
                         {false, {3, 4, 3, 4, 3, 4}, {1}}};
  c.schedule.workers.resize(5);
  auto add = [&](int32_t worker, Kind kind, std::vector<int32_t> stages) {
    for (int32_t stage : stages)
      c.schedule.workers[worker].push_back(
          {kind, worker / 3, stage, worker / 3});
  };
  add(0, Kind::Forward, {3, 0});
  add(1, Kind::Forward, {1, 4});
  add(2, Kind::Forward, {2, 5});
  add(3, Kind::Forward, {2, 0, 4});
  add(4, Kind::Forward, {1, 3, 5});
  add(0, Kind::Backward, {3, 0});
  add(1, Kind::Backward, {4, 1});
  add(2, Kind::Backward, {5, 2});
  add(3, Kind::Backward, {4, 2, 0});
  add(4, Kind::Backward, {5, 3, 1});
  ASSERT_EQ(check(c.problem), "");
  std::vector<int32_t> workers;
  std::vector<size_t> notes;
  for (const Violation &violation : verify(c.problem, c.schedule)) {
    EXPECT_EQ(violation.constraint, Constraint::Deadlock);
    workers.push_back(violation.worker);
    notes.push_back(violation.notes.size());
  }
  // Workers 3 and 4 wait for each other. Worker 0 waits for 2, 2 waits for 1,
  // and 1 waits for 0.
  EXPECT_EQ(workers, (std::vector<int32_t>{3, 4, 0, 2, 1}));
  // A note says where an awaited action is. If its worker is stuck exactly at
  // this action, there is no note, because the report of that worker says where
  // it is.
  EXPECT_EQ(notes, (std::vector<size_t>{0, 1, 0, 0, 1}));
}

TEST(Verify, SlotsAscendOnAWorker) {
  Case c = makeCase("chimera", 2, 2);
  c.schedule.slots[0][1] = c.schedule.slots[0][0];
  EXPECT_TRUE(
      has(c, Constraint::Slots,
          "worker 0: expected a slot after that of the previous action, got "
          "slot 0 for forward of pipeline 1, stage 1, micro-batch 1"));
}

TEST(Verify, SlotsBeginAtZero) {
  Case c = makeCase("gpipe", 1, 1);
  c.schedule.slots = {{-1, 0}};
  EXPECT_EQ(violationText(verify(c.problem, c.schedule)),
            "worker 0: expected a slot after that of the previous action, "
            "got slot -1 for forward of stage 0, micro-batch 0\n");
}

/// The operands of an action must be in earlier slots than the action.
TEST(Verify, AnActionIsInALaterSlotThanItsOperands) {
  Case c = makeCase("gpipe", 2, 1);
  c.schedule.slots = {{0, 3}, {1, 2}};
  EXPECT_EQ(violationText(verify(c.problem, c.schedule)), "");
  c.schedule.slots = {{0, 3}, {0, 2}};
  EXPECT_EQ(violationText(verify(c.problem, c.schedule)),
            "forward of stage 1, micro-batch 0 in slot 0 depends on forward "
            "of stage 0, micro-batch 0, which is not in an earlier slot, but "
            "in slot 0\n");
}

TEST(Verify, SlotsRespectDependencies) {
  Case c = makeCase("chimera", 2, 2);
  for (int64_t &slot : c.schedule.slots[1])
    slot += 10;
  EXPECT_TRUE(has(c, Constraint::Slots,
                  "forward of pipeline 1, stage 1, micro-batch 1 in slot 1 "
                  "depends on forward of pipeline 1, stage 0, micro-batch 1, "
                  "which is not in an earlier slot, but in slot 10"));
}

TEST(Verify, SlotsHaveTheShapeOfTheOrder) {
  Case c = makeCase("chimera", 2, 2);
  c.schedule.slots[1].pop_back();
  EXPECT_TRUE(has(c, Constraint::Slots, "expected a slot for each action"));
  c.schedule.slots.pop_back();
  EXPECT_TRUE(has(c, Constraint::Slots, "expected a slot for each action"));
}

/// All violations are reported, not only the first.
TEST(Verify, ReportsEveryViolation) {
  Case c = makeCase("gpipe", 2, 3);
  c.schedule.workers[0].clear();
  EXPECT_EQ(verify(c.problem, c.schedule).size(), 6u);
}

} // namespace
} // namespace chimera::schedule
