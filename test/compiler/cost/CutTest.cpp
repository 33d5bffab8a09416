//===- CutTest.cpp - Models that are cut into stages ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/cost/Cut.h"
#include "test/compiler/cost/Models.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace chimera::cost {
namespace {

using schedule::Recompute;

int64_t timeOf(const CutStage &stage, bool again) {
  return stage.cost.forward * (again ? 2 : 1) + stage.cost.inputGradient +
         stage.cost.weightGradient;
}

/// Cuts the layers from `layer` on into the stages from `stage` on, in every
/// possible way. Returns the least time of the longest stage.
int64_t leastOfCuts(const LayerTable &table,
                    const std::vector<Recompute> &recompute, int32_t stages,
                    int32_t stage = 0, int32_t layer = 0) {
  if (stage == stages)
    return layer == table.size() ? 0 : INT64_MAX;
  int64_t least = INT64_MAX, time = 0;
  bool again = !recompute.empty() && recompute[stage] != Recompute::None;
  for (int32_t end = layer; end < table.size(); ++end) {
    time += table.layers[end].forward * (again ? 2 : 1) +
            table.layers[end].backward;
    int64_t rest = leastOfCuts(table, recompute, stages, stage + 1, end + 1);
    least = std::min(least, std::max(time, rest));
  }
  return least;
}

TEST(CutModel, CutsAsWellAsAnyOther) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    LayerTable table = someModel(9, seed).table(2, 1, nullptr);
    for (int32_t stages = 1; stages <= 6; ++stages)
      for (uint32_t mask : {0u, 1u, 5u, 63u}) {
        std::vector<Recompute> recompute;
        for (int32_t s = 0; mask != 0 && s < stages; ++s)
          recompute.push_back(mask >> s & 1 ? Recompute::Early
                                            : Recompute::None);
        std::vector<CutStage> cut = cutIntoStages(table, stages, recompute);
        int64_t most = 0;
        int32_t next = 0;
        for (size_t s = 0; s < cut.size(); ++s) {
          EXPECT_EQ(cut[s].first, next);
          EXPECT_LT(cut[s].first, cut[s].end);
          next = cut[s].end;
          most = std::max(most, timeOf(cut[s], mask >> s & 1));
        }
        EXPECT_EQ(next, table.size());
        EXPECT_EQ(most, leastOfCuts(table, recompute, stages))
            << "seed " << seed << ", " << stages << " stages, mask " << mask;
      }
  }
}

TEST(CutModel, HoldsWhatItsLayersDo) {
  Machine machine = someMachine(2, 1 << 30);
  LayerTable table = someModel(5, 3).table(4, 1, &machine);
  std::vector<CutStage> cut = cutIntoStages(table, 2, {});
  schedule::StageBytes sum;
  schedule::StageCost cost{0, 0, 0, 0, 0, 0};
  for (const CutStage &stage : cut) {
    sum.weights += stage.bytes.weights;
    sum.optimizer += stage.bytes.optimizer;
    sum.stash += stage.bytes.stash;
    sum.weightStash += stage.bytes.weightStash;
    cost.forward += stage.cost.forward;
    cost.backward += stage.cost.backward;
    EXPECT_EQ(stage.bytes.boundary, table.layers[stage.end - 1].boundary);
    EXPECT_EQ(stage.cost.recompute, stage.cost.forward);
    EXPECT_EQ(stage.cost.backward,
              stage.cost.inputGradient + stage.cost.weightGradient);
    // For each parameter the update reads 4 bytes of gradient, and reads and
    // writes 4 bytes of weight and 8 bytes of optimizer state: 28 bytes. The
    // time is rounded up for each layer, at 500 bytes per ns.
    int64_t update = 0;
    for (int32_t i = stage.first; i < stage.end; ++i)
      update += (28 * table.layers[i].parameters + 499) / 500;
    EXPECT_EQ(stage.cost.update, update);
  }
  int64_t parameters = 0, stash = 0, forward = 0;
  for (const LayerCost &layer : table.layers) {
    parameters += layer.parameters;
    stash += layer.stash;
    forward += layer.forward;
  }
  EXPECT_EQ(sum.weights, 4 * parameters);
  EXPECT_EQ(sum.optimizer, 8 * parameters);
  EXPECT_EQ(sum.stash, stash);
  EXPECT_EQ(cost.forward, forward);
}

TEST(CutModel, HoldsTiedParametersOnceWhereAStageHasBoth) {
  LayerTable table = someModel(3, 1).table(1, 1, nullptr);
  table.tiedParameters = 7;
  EXPECT_EQ(cutIntoStages(table, 1, {})[0].bytes.weights,
            4 * (table.layers[0].parameters + table.layers[1].parameters +
                 table.layers[2].parameters - 7));
  EXPECT_EQ(cutIntoStages(table, 3, {})[0].bytes.weights,
            4 * table.layers[0].parameters);
  EXPECT_EQ(tiedBytes(table, cutIntoStages(table, 1, {})), 0);
  EXPECT_EQ(tiedBytes(table, cutIntoStages(table, 2, {})), 28);
}

TEST(CutModel, GivesEachPartOfABackwardTime) {
  Model model({{1, 1, 1, 1, 1, 1, 1}}, kFloats, optimizerNamed(program::kSgd));
  schedule::StageCost cost =
      cutIntoStages(model.table(1, 1, nullptr), 1, {}, 4)[0].cost;
  for (int64_t time :
       {cost.forward, cost.backward, cost.inputGradient, cost.weightGradient})
    EXPECT_EQ(time, 4);
}

TEST(Model, CountsWhatEachPartKeeps) {
  Model model(std::make_shared<program::PackageT>(smallModel()), kFloats,
              optimizerNamed(program::kSgd));
  std::vector<LayerCost> whole = model.table(4, 1, nullptr).layers,
                         halves = model.table(4, 2, nullptr).layers,
                         half = model.table(2, 1, nullptr).layers;
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(halves[i].stash, 2 * half[i].stash);
    EXPECT_EQ(halves[i].weightStash, 2 * half[i].weightStash);
    EXPECT_EQ(halves[i].boundary, whole[i].boundary);
    EXPECT_EQ(halves[i].forward, whole[i].forward);
  }
  // The head saves the divisor of the loss (4 bytes) once for each part, so two
  // halves save one more than a whole.
  EXPECT_EQ(halves.back().stash, whole.back().stash + 4);
}

TEST(CheckCut, NeedsALayerForEachStage) {
  EXPECT_EQ(checkCut(4, 4), "");
  EXPECT_EQ(checkCut(4, 5),
            "expected at most 4 stages, the model's layers with "
            "embedding and head, got 5");
  EXPECT_EQ(checkCut(60000, 60000),
            "expected at most 67108864 layers times stages, got 3600000000");
}

TEST(Model, TakesTheMachinesTimePerLayer) {
  Machine machine = someMachine(1, 1);
  machine.speed = 2000000000;
  machine.layerOverhead = 5;
  Model model({{10, 20, 31, 1, 1, 1, 1}}, kFloats,
              optimizerNamed(program::kSgd));
  LayerCost cost = model.table(3, 1, &machine).layers[0];
  EXPECT_EQ(cost.forward, 15 + 5);
  EXPECT_EQ(cost.inputGradient, 30 + 5);
  EXPECT_EQ(cost.weightGradient, 47 + 5); // rounded up
}

TEST(Model, RefusesWhatCannotBeAddedUp) {
  int64_t huge = int64_t{1} << 59;
  Model model({{huge, 1, 1, 1, 1, 1, 1}, {huge, 1, 1, 1, 1, 1, 1}}, kFloats,
              optimizerNamed(program::kSgd));
  EXPECT_EQ(model.check(1, 1, nullptr),
            "expected a model whose operations, bytes and nanoseconds for a "
            "micro-batch are below 2^60");
  EXPECT_NE(model.check(1 << 30, 1, nullptr), "");
  EXPECT_EQ(model.check(0, 1, nullptr),
            "expected a micro-batch of at least one sample and less than 2^32, "
            "got 0");
}

} // namespace
} // namespace chimera::cost
