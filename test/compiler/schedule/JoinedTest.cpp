//===- JoinedTest.cpp - Actions that run as one ---------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/formats/OrderText.h"
#include "compiler/schedule/model/Recompute.h"
#include "compiler/schedule/simulate/Bounds.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "compiler/schedule/simulate/StepTime.h"
#include "compiler/schedule/simulate/Windows.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

namespace chimera::schedule {
namespace {

bool isBackward(Kind kind) {
  return kind == Kind::Backward || kind == Kind::InputGradient;
}

/// Whether `first` and `second` can be joined.
bool canJoin(const Action &first, const Action &second) {
  const bool sameStage = first.stage == second.stage;
  return first.kind == Kind::Forward
             ? isBackward(second.kind) &&
                   (!sameStage || first.microBatch != second.microBatch)
             : first.kind == Kind::WeightGradient &&
                   second.kind == first.kind &&
                   first.pipeline == second.pipeline && sameStage;
}

/// Joins about half of the actions that can be joined with the next one. Joins
/// all of them if `random` is null.
void joinActions(Case &c, std::mt19937 *random) {
  for (std::vector<Action> &order : c.schedule.workers)
    for (size_t i = 0; i + 1 < order.size(); ++i)
      order[i].joinedWithNext =
          canJoin(order[i], order[i + 1]) && (!random || (*random)() % 2 == 0);
}

/// Moves each weight gradient of an order to its end. Then many of them are
/// next to each other.
void delayWeightGradients(Case &c) {
  for (std::vector<Action> &order : c.schedule.workers)
    std::ranges::stable_partition(order, [](const Action &action) {
      return action.kind != Kind::WeightGradient;
    });
}

/// Calls `visit(c)` with schedules of many families and sizes, some of whose
/// actions are joined.
template <typename Visit> void forEachJoined(Visit visit) {
  std::mt19937 random(1);
  const StageCost cost{3, 5, 3, 6, 3, 1, 2};
  for (const char *name :
       {"1f1b", "gpipe", "interleaved-1f1b", "chimera", "gems", "zb-v"})
    for (int32_t d : {2, 3, 4, 8})
      for (int32_t n : {1, 2, d, 2 * d, 3 * d})
        for (bool split : {false, true}) {
          const Choice choice(
              {}, std::string_view(name) == "zb-v" || name[0] == 'i' ? 2 : 1);
          if (!canPlan(*findScheme(name), d, n, choice))
            continue;
          SCOPED_TRACE(nameOf(*findScheme(name), d, n, choice));
          for (int round = 0; round < 4; ++round) {
            Case c = makeCase(name, d, n, cost, split, choice);
            c.schedule.slots.clear();
            for (StageCost &stage : c.problem.stages) {
              stage.pairedForward = 1 + random() % 4;
              stage.joinedWeightGradient = 1 + random() % 7;
            }
            if (round % 2 == 1)
              delayWeightGradients(c);
            joinActions(c, round == 0 ? nullptr : &random);
            ASSERT_EQ(check(c.problem), "");
            visit(c, random);
          }
        }
}

/// The times of a schedule whose actions cover one whole micro-batch each,
/// without recomputes: a second, slow way to compute them.
struct SlowTimes {
  std::vector<std::vector<int64_t>> starts, ends;
  std::vector<int64_t> busy, occupied;
  bool complete = true;
};

class SlowSimulation {
public:
  explicit SlowSimulation(const Case &c) : problem(c.problem) {
    const size_t workers = c.schedule.workers.size();
    times.busy.assign(workers, 0);
    times.occupied.assign(workers, 0);
    std::vector<size_t> next(workers, 0);
    std::vector<int64_t> free(workers, 0);
    for (const auto &order : c.schedule.workers) {
      times.starts.emplace_back(order.size(), -1);
      times.ends.emplace_back(order.size(), -1);
    }
    for (bool progress = true; progress;) {
      progress = false;
      for (size_t w = 0; w < workers; ++w)
        while (next[w] < c.schedule.workers[w].size() &&
               run(w, c.schedule.workers[w], next[w], free[w]))
          progress = true;
    }
    for (size_t w = 0; w < workers; ++w)
      times.complete &= next[w] == c.schedule.workers[w].size();
  }

  SlowTimes times;

private:
  using Key = std::tuple<int, int32_t, int32_t>; ///< kind, stage, micro-batch

  static Key keyOf(Kind kind, int32_t stage, int32_t microBatch) {
    return {kind == Kind::InputGradient ? static_cast<int>(Kind::Backward)
                                        : static_cast<int>(kind),
            stage, microBatch};
  }
  int32_t workerOf(const Action &action, int32_t stage) const {
    const std::vector<int32_t> &on = problem.pipelines[action.pipeline].workers;
    return stage < 0 || stage >= std::ssize(on) ? -1 : on[stage];
  }
  /// The stage to which the action sends its result (`sends`) or from which it
  /// gets a value. The same stage if there is none.
  static int32_t otherStage(const Action &action, bool sends) {
    if (action.kind == Kind::WeightGradient)
      return action.stage;
    return action.stage + ((action.kind == Kind::Forward) == sends ? 1 : -1);
  }
  bool hasMessage(const Action &action, bool sends) const {
    const int32_t other = workerOf(action, otherStage(action, sends));
    return other >= 0 && other != workerOf(action, action.stage);
  }

  /// Runs the unit at `next`: an action, or actions that are joined. False if
  /// it cannot run yet.
  bool run(size_t w, const std::vector<Action> &order, size_t &next,
           int64_t &free) {
    size_t end = next + 1;
    while (order[end - 1].joinedWithNext)
      ++end;
    int64_t now = free;
    for (size_t i = next; i < end; ++i) {
      const Action &action = order[i];
      if (action.kind == Kind::WeightGradient ? !has(action, Kind::Backward)
          : isBackward(action.kind)           ? !has(action, Kind::Forward)
                                              : false)
        return false;
      const int32_t other = otherStage(action, false);
      if (other == action.stage || workerOf(action, other) < 0)
        continue;
      auto found = results.find(keyOf(action.kind, other, action.microBatch));
      if (found == results.end())
        return false;
      now = std::max(now,
                     found->second +
                         (hasMessage(action, false) ? problem.link.alpha : 0));
    }
    auto message = [&](size_t i, bool sends, int64_t time) {
      if (!hasMessage(order[i], sends))
        return;
      now += time;
      times.occupied[w] += time;
    };
    for (size_t i = next; i < end; ++i)
      message(i, false, problem.link.receive.alpha);
    for (size_t i = next; i < end; ++i) {
      const StageCost &cost = problem.stages[order[i].stage];
      const int64_t time = i + 1 == end ? cost.timeOf(order[i].kind)
                           : order[i].kind == Kind::Forward
                               ? *cost.pairedForward
                               : *cost.joinedWeightGradient;
      times.starts[w][i] = now;
      times.ends[w][i] = now += time;
      times.busy[w] += time;
    }
    for (size_t i = next; i < end; ++i) {
      message(i, true, problem.link.send.alpha);
      results[keyOf(order[i].kind, order[i].stage, order[i].microBatch)] = now;
    }
    next = end;
    free = now;
    return true;
  }

  bool has(const Action &action, Kind kind) const {
    return results.contains(keyOf(kind, action.stage, action.microBatch));
  }

  const Problem &problem;
  std::map<Key, int64_t> results; ///< when each action's result has left
};

TEST(Joined, ActionsRunAsOne) {
  int complete = 0, stuck = 0;
  forEachJoined([&](Case &c, std::mt19937 &random) {
    c.problem.link.alpha = random() % 3;
    c.problem.link.send.alpha = random() % 3;
    c.problem.link.receive.alpha = random() % 3;
    const SlowTimes slow = SlowSimulation(c).times;
    const Timing timing = simulate(c.problem, c.schedule);
    ASSERT_EQ(timing.complete, slow.complete);
    ASSERT_EQ(verify(c.problem, c.schedule).empty(), slow.complete);
    ++(slow.complete ? complete : stuck);
    ASSERT_EQ(timing.starts, slow.starts);
    ASSERT_EQ(timing.ends, slow.ends);
    ASSERT_EQ(timing.busy, slow.busy);
    ASSERT_EQ(timing.occupied, slow.occupied);
    if (slow.complete) {
      ASSERT_EQ(totalsOf(messageOccupationsOf(c.problem, c.schedule, timing)),
                slow.occupied);
    }
  });
  EXPECT_GT(complete, 100);
  EXPECT_GT(stuck, 100);
}

/// Without messages, the actions of the critical path run without a gap.
TEST(Joined, ActionsHaveACriticalPath) {
  forEachJoined([](Case &c, std::mt19937 &) {
    const Timing timing = simulate(c.problem, c.schedule);
    if (!timing.complete)
      return;
    int64_t sum = 0;
    for (const ActionRef &ref : timing.criticalPath)
      sum += timing.ends[ref.worker][ref.index] -
             timing.starts[ref.worker][ref.index];
    ASSERT_EQ(sum, timing.makespan);
  });
}

/// Windows as large as the number of messages, enough cores, and messages in
/// device order that take no time change nothing. All bounds hold.
TEST(Joined, ActionsRunInAllKindsOfSimulations) {
  forEachJoined([](Case &c, std::mt19937 &random) {
    if (!verify(c.problem, c.schedule).empty())
      return;
    c.problem.link.alpha = random() % 3;
    const Timing timing = simulate(c.problem, c.schedule);
    const Windows windows(c.problem, c.schedule);
    ASSERT_EQ(windows.simulate(windows.maxMessages(), true).ends, timing.ends);
    for (const Bound &bound : bounds(c.problem))
      if (bound.holdsForSimulator) {
        ASSERT_LE(bound.time, timing.makespan) << bound.name;
      }
    ASSERT_GE(simulate(c.problem, c.schedule, {.inDeviceOrder = true}).makespan,
              timing.makespan);
    Case shared = c;
    shared.problem.node.emplace();
    shared.problem.node->devices = c.problem.workers;
    shared.problem.node->links.link = c.problem.link;
    shared.problem.node->cores = c.problem.workers;
    ASSERT_EQ(simulate(shared.problem, shared.schedule).ends, timing.ends);
    shared.problem.node->cores = 1;
    ASSERT_TRUE(simulate(shared.problem, shared.schedule).complete);
    for (StageCost &stage : c.problem.stages)
      stage.update = 3;
    ASSERT_GE(stepTime(c.problem, c.schedule).total, timing.maxLoad());
  });
}

TEST(Joined, ActionsAreOneWordOfAnOrder) {
  forEachJoined([](Case &c, std::mt19937 &) {
    OrderText text(c.problem.workers, c.problem.pipelines, c.problem.updates);
    for (int32_t w = 0; w < c.problem.workers; ++w) {
      OrderLine line;
      const std::string written = text.write(c.schedule, w);
      const auto error = text.read(w, written, line);
      ASSERT_FALSE(error) << written << ": " << error->message;
      ASSERT_EQ(line.actions, c.schedule.workers[w]) << written;
    }
  });
  Case c = makeCase("1f1b", 2, 3);
  joinActions(c, nullptr);
  OrderText text(2, c.problem.pipelines, c.problem.updates);
  EXPECT_EQ(text.write(c.schedule, 0), "F0 F1+B0 F2+B1 B2");
  for (auto [wrong, offset, message] :
       {std::tuple("B0+B1", 0u,
                   "expected a forward or a weight gradient before +, such as "
                   "F1+B0 or W0+W1"),
        std::tuple("F0 F1+F2", 6u,
                   "expected a backward or an input gradient after +, such as "
                   "F1+B0"),
        std::tuple("F0+", 3u, "expected a word such as "),
        std::tuple("F1+B0+B1", 3u,
                   "expected a forward or a weight gradient before +"),
        std::tuple("W0+B1", 3u,
                   "expected a weight gradient after +, such as W0+W1")}) {
    OrderLine line;
    const auto error = text.read(0, wrong, line);
    ASSERT_TRUE(error) << wrong;
    EXPECT_EQ(error->offset, offset) << wrong;
    EXPECT_TRUE(error->message.starts_with(message)) << error->message;
  }
}

/// A recompute runs before the pair of its backward.
TEST(Joined, PairsComeAfterRecomputes) {
  Case c = makeCase("1f1b", 2, 3);
  joinActions(c, nullptr);
  c.problem.recompute.assign(2, Recompute::Early);
  c.schedule = insertRecompute(c.problem, c.schedule);
  OrderText text(2, c.problem.pipelines, c.problem.updates);
  EXPECT_EQ(text.write(c.schedule, 0), "F0 R0 F1+B0 R1 F2+B1 R2 B2");
  EXPECT_EQ(violationText(verify(c.problem, c.schedule)), "");
}

/// The message of a paired forward leaves when the backward has ended. So pairs
/// can cause a deadlock.
TEST(Joined, PairsCanCauseADeadlock) {
  Case c = makeCase("gpipe", 2, 2);
  EXPECT_TRUE(verify(c.problem, c.schedule).empty());
  c.schedule.workers[0][1].joinedWithNext = true; // F1+B0
  const std::vector<Violation> violations = verify(c.problem, c.schedule);
  EXPECT_EQ(
      violationText(violations),
      "deadlock: worker 0 cannot run backward of stage 0, micro-batch 0, "
      "because it waits for backward of stage 1, micro-batch 0, which worker 1 "
      "cannot run before forward of stage 1, micro-batch 1\n"
      "deadlock: worker 1 cannot run forward of stage 1, micro-batch 1, "
      "because it waits for forward of stage 0, micro-batch 1, which worker 0 "
      "cannot run without backward of stage 0, micro-batch 0, with which it is "
      "paired\n");
}

TEST(Joined, PairsAreAForwardAndABackwardThatDoNotNeedEachOther) {
  auto textWith = [](Kind second, int32_t microBatch) {
    Case c = makeCase("gpipe", 1, 2);
    std::vector<Action> &order = c.schedule.workers[0];
    size_t at = 0;
    while (order[at].kind != second || order[at].microBatch != microBatch)
      ++at;
    order[at - 1].joinedWithNext = true;
    return violationText(verify(c.problem, c.schedule));
  };
  EXPECT_EQ(textWith(Kind::Backward, 0), "");
  const char *kinds = ": a pair is a forward and then a backward or an input "
                      "gradient\n";
  EXPECT_EQ(textWith(Kind::Forward, 1),
            std::string("worker 0: forward of stage 0, micro-batch 0 cannot be "
                        "paired with forward of stage 0, micro-batch 1") +
                kinds);
  Case c = makeCase("1f1b", 1, 1);
  c.schedule.workers[0][0].joinedWithNext = true;
  EXPECT_EQ(violationText(verify(c.problem, c.schedule)),
            "worker 0: forward of stage 0, micro-batch 0 cannot be paired with "
            "backward of stage 0, micro-batch 0: the second needs the result "
            "of the first\n");
  c = makeCase("gpipe", 1, 1);
  c.schedule.workers[0].pop_back();
  c.schedule.workers[0][0].joinedWithNext = true;
  EXPECT_EQ(violationText(verify(c.problem, c.schedule)),
            std::string("worker 0: forward of stage 0, micro-batch 0 cannot be "
                        "paired with nothing") +
                kinds + "backward of stage 0, micro-batch 0 is missing\n");
}

/// Without a flush no actions are joined.
TEST(Joined, ActionsNeedAFlush) {
  Case c = makeCase("pipedream", 2, 2);
  joinActions(c, nullptr);
  EXPECT_NE(violationText(verify(c.problem, c.schedule))
                .find("pairs and joint weight gradients need a flush at the "
                      "end of each step"),
            std::string::npos);
}

/// Each of N joined weight gradients but the last takes the joined time.
TEST(Joined, WeightGradientsAreJoinedInAnyNumber) {
  for (int32_t n : {1, 2, 5, 100}) {
    Case c = makeCase("gpipe", 1, n, {3, 5, 3, 7}, /*split=*/true);
    c.schedule.slots.clear();
    delayWeightGradients(c);
    joinActions(c, nullptr);
    c.problem.stages[0].joinedWeightGradient = 2;
    EXPECT_EQ(violationText(verify(c.problem, c.schedule)), "");
    EXPECT_EQ(simulate(c.problem, c.schedule).makespan,
              3 * n + 3 * n + 7 + 2 * (n - 1));
    // Without a time of its own, nothing is saved.
    c.problem.stages[0].joinedWeightGradient.reset();
    EXPECT_EQ(simulate(c.problem, c.schedule).makespan, (3 + 3 + 7) * n);
  }
}

TEST(Joined, WeightGradientsAreOfOneStage) {
  Case c = makeCase("interleaved-1f1b", 1, 1, {3, 5, 3, 2}, /*split=*/true,
                    Choice({}, 2));
  c.schedule.slots.clear();
  delayWeightGradients(c);
  std::vector<Action> &order = c.schedule.workers[0];
  ASSERT_EQ(order[order.size() - 2].kind, Kind::WeightGradient);
  order[order.size() - 2].joinedWithNext = true;
  EXPECT_EQ(violationText(verify(c.problem, c.schedule)),
            "worker 0: weight_gradient of stage 1, micro-batch 0 cannot be "
            "joined with weight_gradient of stage 0, micro-batch 0: a joint "
            "weight gradient has weight gradients of one stage\n");
  order[order.size() - 2].joinedWithNext = false;
  order.back().joinedWithNext = true;
  EXPECT_EQ(violationText(verify(c.problem, c.schedule)),
            "worker 0: weight_gradient of stage 0, micro-batch 0 cannot be "
            "joined with nothing: a joint weight gradient has weight gradients "
            "of one stage\n");
  order.back().joinedWithNext = false;
  for (Action &action : order)
    if (action.kind == Kind::InputGradient) {
      action.joinedWithNext = true;
      break;
    }
  EXPECT_NE(violationText(verify(c.problem, c.schedule))
                .find("only forwards and weight gradients are joined with the "
                      "next action"),
            std::string::npos);
}

} // namespace
} // namespace chimera::schedule
