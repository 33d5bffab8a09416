//===- ChimeraTest.cpp - Chimera's orders, made in other ways -------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// compiler/schedule makes the orders of Chimera from a table of slots. These
// tests make them from formulas and from loops without a table, and compare.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/simulate/Simulate.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace chimera::schedule {
namespace {

/// The order of one worker, for two pipelines and even D, made by loops without
/// a table. X is the pipeline whose stage on this worker has the lower index,
/// and Y is the other pipeline. With doubling, two micro-batches of a pipeline
/// follow each other. Each kind of action runs on the micro-batches in
/// ascending order.
class FivePhases {
public:
  FivePhases(int32_t d, int32_t worker, bool doubled)
      : d(d), worker(worker), doubled(doubled) {}

  std::vector<Action> run(int32_t units) {
    int32_t h = d / 2;
    int32_t x = worker < h ? 0 : 1, y = 1 - x;
    int32_t a = worker < h ? h - worker : worker - h + 1, b = h - a;
    for (int32_t k = 0; k < units; ++k) {
      for (int32_t i = 0; i < a; ++i) {
        if (k > 0)
          backward(x);
        forward(x);
      }
      for (int32_t i = 0; i < b; ++i) {
        forward(y);
        forward(x);
      }
      for (int32_t i = 0; i < a; ++i) {
        forward(y);
        backward(y);
      }
      for (int32_t i = 0; i < (doubled ? b + h : b); ++i) {
        backward(x);
        backward(y);
      }
    }
    for (int32_t i = 0; i < a; ++i)
      backward(x);
    return std::move(program);
  }

private:
  void forward(int32_t pipeline) {
    for (int32_t i = 0; i < (doubled ? 2 : 1); ++i)
      append(Kind::Forward, pipeline);
  }
  void backward(int32_t pipeline) { append(Kind::Backward, pipeline); }

  void append(Kind kind, int32_t pipeline) {
    int32_t i = next[static_cast<int>(kind)][pipeline]++;
    // The number of the pipeline's i-th micro-batch. Without doubling, each
    // pipeline has one half of each unit of D micro-batches. With doubling, it
    // has every second pair of micro-batches.
    int32_t m = doubled ? i / 2 * 4 + i % 2 + 2 * pipeline
                        : i / (d / 2) * d + i % (d / 2) + d / 2 * pipeline;
    program.push_back(
        {kind, pipeline, pipeline == 0 ? worker : d - 1 - worker, m});
  }

  int32_t d, worker;
  bool doubled;
  int32_t next[2][2] = {};
  std::vector<Action> program;
};

TEST(Chimera, HasFivePhasesOnEveryWorker) {
  for (int32_t d = 2; d <= 32; d += 2)
    for (int32_t units = 1; units <= 4; ++units) {
      Case direct = makeCase("chimera", d, units * d);
      Case doubled = makeCase("chimera", d, 2 * units * d, {1, 2, 1, 1}, false,
                              chimeraWith(2, Concatenation::FineTunedDoubling));
      for (int32_t w = 0; w < d; ++w) {
        EXPECT_EQ(direct.schedule.workers[w],
                  FivePhases(d, w, false).run(units))
            << d << " " << units << " " << w;
        EXPECT_EQ(doubled.schedule.workers[w],
                  FivePhases(d, w, true).run(units))
            << d << " " << units << " " << w;
      }
    }
}

/// How many of the `count` micro-batches of a unit each pipeline has. They go
/// one by one to the pipelines d0 (down), u0 (up), d1, u1, …. A unit has D
/// micro-batches, or D-1 for odd D; the last unit may have fewer.
std::vector<int32_t> shareOut(int32_t count, int32_t pipelines) {
  std::vector<int32_t> shares(pipelines, 0);
  for (int32_t i = 0; i < count; ++i)
    ++shares[i % pipelines];
  return shares;
}

/// The slots of direct concatenation. In every unit, the j-th micro-batch of a
/// pipeline runs its forward on stage s in slot 2j + s and its backward in slot
/// 2j + 2D-1 - s. For odd D, all slots of the up pipeline are one later. A unit
/// starts 2D slots after the previous one.
TEST(Chimera, HasTheSlotsOfTheFormula) {
  for (int32_t d = 2; d <= 24; ++d)
    for (const Choice &choice : choices(*findScheme("chimera"), d)) {
      if (concatenationOf(choice) != Concatenation::Direct)
        continue;
      int32_t unit = d - d % 2, p = pipelinesOf(choice);
      for (int32_t n : {1, 2, d - 1, d, d + 1, 2 * d + d / 2, 3 * d}) {
        SCOPED_TRACE(nameOf(*findScheme("chimera"), d, n, choice));
        // The pipeline and the first slot of each micro-batch.
        std::map<int32_t, std::pair<int32_t, int64_t>> stated;
        for (int32_t k = 0, m = 0; m < n; ++k) {
          std::vector<int32_t> shares = shareOut(std::min(unit, n - m), p);
          for (int32_t q = 0; q < p; ++q)
            for (int32_t j = 0; j < shares[q]; ++j)
              stated[m++] = {q, 2 * d * k + 2 * j + (q % 2) * (d % 2)};
        }
        Case c = makeCase("chimera", d, n, {}, false, choice);
        ASSERT_TRUE(c.schedule.hasSlots());
        for (int32_t w = 0; w < d; ++w)
          for (size_t i = 0; i < c.schedule.workers[w].size(); ++i) {
            const Action &action = c.schedule.workers[w][i];
            auto [pipeline, first] = stated[action.microBatch];
            EXPECT_EQ(action.pipeline, pipeline);
            EXPECT_EQ(c.schedule.slots[w][i],
                      first + (action.kind == Kind::Forward
                                   ? action.stage
                                   : 2 * d - 1 - action.stage));
          }
      }
    }
}

/// With 2f pipelines, down pipeline i has stage s on worker (s + i D/f) mod D.
/// Up pipeline i has stage s on worker (D-1-s + i D/f) mod D.
TEST(Chimera, PlacesEveryPipeline) {
  for (int32_t d = 2; d <= 32; d += 2)
    for (int32_t f = 1; f <= d / 2; ++f) {
      if (d / 2 % f != 0)
        continue;
      Case c = makeCase("chimera", d, d, {}, false, chimeraWith(2 * f));
      ASSERT_EQ(c.problem.pipelines.size(), 2u * f);
      for (int32_t q = 0; q < 2 * f; ++q) {
        EXPECT_EQ(c.problem.pipelines[q].up, q % 2 == 1);
        for (int32_t s = 0; s < d; ++s)
          EXPECT_EQ(c.problem.pipelines[q].workers[s],
                    ((q % 2 ? d - 1 - s : s) + q / 2 * (d / f)) % d);
      }
    }
}

/// The micro-batches of an incomplete unit go one by one to the pipelines d0
/// (down), u0 (up), d1, u1, …. So the first pipelines may have one more than
/// the others. Micro-batches are numbered pipeline by pipeline.
TEST(Chimera, DividesARemainderOfAUnit) {
  auto shares = [](int32_t d, int32_t n, int32_t pipelines) {
    std::vector<std::vector<int32_t>> result;
    for (const Pipeline &pipeline :
         makeCase("chimera", d, n, {}, false, chimeraWith(pipelines))
             .problem.pipelines)
      result.push_back(pipeline.microBatches);
    return result;
  };
  using Shares = std::vector<std::vector<int32_t>>;
  EXPECT_EQ(shares(8, 6, 4), (Shares{{0, 1}, {2, 3}, {4}, {5}}));
  EXPECT_EQ(shares(8, 11, 4),
            (Shares{{0, 1, 8}, {2, 3, 9}, {4, 5, 10}, {6, 7}}));
  EXPECT_EQ(shares(4, 5, 2), (Shares{{0, 1, 4}, {2, 3}}));
  EXPECT_EQ(shares(5, 5, 2), (Shares{{0, 1, 4}, {2, 3}}));
  EXPECT_EQ(shares(4, 1, 2), (Shares{{0}}));
  EXPECT_EQ(shares(8, 3, 8), (Shares{{0}, {1}, {2}}));
}

/// Replaces each action of `direct` on micro-batch m by two actions, on 2m and
/// 2m+1. If `together`, replaces a forward by one forward over both
/// micro-batches. If `n` is odd, the last micro-batch has no partner.
std::vector<Action> twice(const std::vector<Action> &direct, int32_t n,
                          bool together) {
  std::vector<Action> program;
  for (Action action : direct) {
    int32_t first = 2 * action.microBatch, count = std::min(2, n - first);
    action.microBatch = first;
    if (together && action.kind == Kind::Forward) {
      action.microBatches = static_cast<uint16_t>(count);
      program.push_back(action);
      continue;
    }
    for (int32_t i = 0; i < count; ++i, ++action.microBatch)
      program.push_back(action);
  }
  return program;
}

/// `direct`, with each backward replaced by two backwards over half a
/// micro-batch.
std::vector<Action> halved(const std::vector<Action> &direct) {
  std::vector<Action> program;
  for (Action action : direct) {
    if (action.kind == Kind::Backward) {
      action.parts = 2;
      program.push_back(action);
      action.part = 1;
    }
    program.push_back(action);
  }
  return program;
}

/// If the last unit is incomplete, or if there are more than two pipelines,
/// doubling uses the order of direct concatenation for half as many
/// micro-batches. Halving uses the order for all micro-batches, with halved
/// backwards.
TEST(Chimera, DoublesTheDirectProgramIfUnitsDoNotFit) {
  for (int32_t d = 2; d <= 16; ++d)
    for (const Choice &choice : choices(*findScheme("chimera"), d)) {
      if (isOneByOne(concatenationOf(choice)))
        continue;
      int32_t unit = d - d % 2;
      for (int32_t n = 1; n <= 4 * d + 3; ++n) {
        if (pipelinesOf(choice) == 2 && n % unit == 0)
          continue;
        bool halves = concatenationOf(choice) == Concatenation::Halving;
        bool together = concatenationOf(choice) == Concatenation::Doubling;
        SCOPED_TRACE(nameOf(*findScheme("chimera"), d, n, choice));
        Case c = makeCase("chimera", d, n, {1, 2, 1, 1}, false, choice);
        Case direct = makeCase("chimera", d, halves ? n : (n + 1) / 2, {},
                               false, chimeraWith(pipelinesOf(choice)));
        for (int32_t w = 0; w < d; ++w)
          EXPECT_EQ(c.schedule.workers[w],
                    halves ? halved(direct.schedule.workers[w])
                           : twice(direct.schedule.workers[w], n, together));
      }
    }
}

/// On the first stage, exchanges each forward that directly follows a backward
/// with this backward. Nothing else moves.
std::vector<Action> withFirstForwardsEarlier(std::vector<Action> direct) {
  for (size_t i = 1; i < direct.size(); ++i)
    if (direct[i - 1].stage == 0 && direct[i - 1].kind == Kind::Backward &&
        direct[i].stage == 0 && direct[i].kind == Kind::Forward)
      std::rotate(direct.begin() + i - 1, direct.begin() + i,
                  direct.begin() + i + 1);
  return direct;
}

TEST(Chimera, EagerSwapsFirstForwardsBeforeBackwards) {
  for (int32_t d = 2; d <= 16; ++d)
    for (const Choice &choice : choices(*findScheme("chimera"), d)) {
      if (concatenationOf(choice) != Concatenation::Eager)
        continue;
      for (int32_t n = 1; n <= 4 * d + 3; ++n) {
        SCOPED_TRACE(nameOf(*findScheme("chimera"), d, n, choice));
        Case eager = makeCase("chimera", d, n, {}, false, choice);
        Case direct = makeCase("chimera", d, n, {}, false,
                               chimeraWith(pipelinesOf(choice)));
        EXPECT_EQ(eager.schedule.slots, direct.schedule.slots);
        bool differs = false;
        for (int32_t w = 0; w < d; ++w) {
          EXPECT_EQ(eager.schedule.workers[w],
                    withFirstForwardsEarlier(direct.schedule.workers[w]));
          differs |= eager.schedule.workers[w] != direct.schedule.workers[w];
        }
        EXPECT_EQ(differs, n > d - d % 2);
      }
    }
}

/// Compares eager with direct concatenation. The stages are unequal. Messages
/// take time on their way, at the sender and at the receiver.
TEST(Chimera, EagerNeverTakesLongerNorHoldsMore) {
  std::mt19937 random(5);
  auto draw = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  int sooner = 0;
  for (int32_t d = 2; d <= 9; ++d)
    for (const Choice &choice : choices(*findScheme("chimera"), d)) {
      if (concatenationOf(choice) != Concatenation::Eager)
        continue;
      for (int32_t n = d; n <= 4 * d + 3; ++n) {
        SCOPED_TRACE(nameOf(*findScheme("chimera"), d, n, choice));
        Case eager = makeCase("chimera", d, n, {}, false, choice);
        Case direct = makeCase("chimera", d, n, {}, false,
                               chimeraWith(pipelinesOf(choice)));
        for (StageCost &cost : eager.problem.stages)
          cost = {draw(1, 9), draw(1, 19), 1, 1};
        eager.problem.link = {{draw(0, 9), 0, 1}, {draw(0, 3)}, {draw(0, 3)}};
        direct.problem = eager.problem;
        Timing now = simulate(eager.problem, eager.schedule);
        Timing before = simulate(direct.problem, direct.schedule);
        EXPECT_LE(now.makespan, before.makespan);
        EXPECT_EQ(now.peakActivations, before.peakActivations);
        sooner += now.makespan < before.makespan;
      }
    }
  EXPECT_GT(sooner, 100);
}

/// N is D (2U+1): U units of pairs, and then half a unit. This half is a plain
/// unit, whose forwards cover one micro-batch each.
TEST(Chimera, EndsInAPlainUnitIfHalfAUnitIsLeft) {
  for (int32_t d = 2; d <= 16; d += 2)
    for (int32_t u = 1; u <= 2; ++u) {
      Choice choice = chimeraWith(2, Concatenation::FineTunedDoubling);
      Case c =
          makeCase("chimera", d, d * (2 * u + 1), {1, 2, 1, 1}, false, choice);
      Case pairs =
          makeCase("chimera", d, 2 * d * u, {1, 2, 1, 1}, false, choice);
      Case plain = makeCase("chimera", d, d);
      // The actions on the first 2 D U micro-batches must have the order of a
      // step of pairs only. The other actions must have the order of a step
      // without doubling.
      for (int32_t w = 0; w < d; ++w) {
        std::vector<Action> first, last;
        for (Action action : c.schedule.workers[w])
          if (action.microBatch < 2 * d * u) {
            first.push_back(action);
          } else {
            action.microBatch -= 2 * d * u;
            last.push_back(action);
          }
        EXPECT_EQ(first, pairs.schedule.workers[w]) << d << " " << w;
        EXPECT_EQ(last, plain.schedule.workers[w]) << d << " " << w;
      }
    }
}

} // namespace
} // namespace chimera::schedule
