//===- LayersTest.cpp - Parameters, bytes and costs of a model's layers ---===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// test/runtime/stage/torch/StashTest.cpp compares the stash bytes with
// measurements.
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Layers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace chimera::program {
namespace {

constexpr Types kFloat32{DataType::Float32, DataType::Float32};
constexpr Types kFloat64{DataType::Float64, DataType::Float64};
constexpr Types kMixed{DataType::Float32, DataType::BFloat16};

ModelT small() {
  ModelT model;
  model.architecture = "gpt2";
  model.layers = 4;
  model.heads = 4;
  model.width = 128;
  model.context = 64;
  model.vocabulary = 256;
  return model;
}

TEST(LayersTest, countsTheParametersOfGpt2) {
  ModelT model = small();
  model.layers = 12;
  model.heads = 12;
  model.width = 768;
  model.context = 1024;
  model.vocabulary = 50257;
  // The published number of parameters of GPT-2, whose head is tied to its
  // embedding.
  constexpr int64_t kTied = 124439808;
  EXPECT_EQ(parameterCount(model, 0, layerCount(model)), kTied + 50257 * 768);
  model.tied = true;
  EXPECT_EQ(parameterCount(model, 0, layerCount(model)), kTied);
}

TEST(LayersTest, countsSlicesThatAddUp) {
  ModelT model = small();
  EXPECT_EQ(layerCount(model), 6u);
  EXPECT_EQ(parameterCount(model, 0, 2) + parameterCount(model, 2, 4),
            parameterCount(model, 0, 6));
  EXPECT_EQ(parameterCount(model, 3, 0), 0);
}

TEST(LayersTest, namesAreUniqueInALayer) {
  ModelT model = small();
  for (uint32_t layer = 0; layer < layerCount(model); ++layer) {
    std::set<std::string> names;
    for (const Parameter &parameter : layerParameters(model, layer))
      EXPECT_TRUE(names.insert(parameter.name).second) << parameter.name;
  }
}

// stageParameters lists the parameters of each layer in order, for stages of
// any layers and models of any sizes. If one stage has both uses of a tied
// matrix, it lists the matrix once.
TEST(LayersTest, laysStagesOut) {
  for (bool tied : {false, true})
    for (uint32_t vocabulary : {1, 7, 256}) {
      ModelT model = small();
      model.heads = 1;
      model.width = 3;
      model.vocabulary = vocabulary;
      model.tied = tied;
      const uint32_t layers = layerCount(model);
      for (uint32_t first = 0; first <= layers; ++first)
        for (uint32_t count = 0; first + count <= layers; ++count) {
          std::vector<StageParameter> expected;
          for (uint32_t layer = first; layer < first + count; ++layer) {
            uint32_t number = 0;
            for (Parameter &parameter : layerParameters(model, layer))
              expected.push_back({layer, number++, std::move(parameter)});
          }
          if (tied && count == layers)
            expected.pop_back();
          std::vector<StageParameter> held =
              stageParameters(model, first, count);
          ASSERT_EQ(held.size(), expected.size());
          int64_t elements = 0;
          for (size_t i = 0; i < held.size(); ++i) {
            EXPECT_EQ(held[i].layer, expected[i].layer);
            EXPECT_EQ(held[i].number, expected[i].number);
            EXPECT_EQ(held[i].parameter.name, expected[i].parameter.name);
            EXPECT_EQ(held[i].parameter.shape, expected[i].parameter.shape);
            elements += held[i].parameter.elements();
          }
          EXPECT_EQ(parameterCount(model, first, count), elements);
        }
    }
}

TEST(LayersTest, findsTiedParameters) {
  for (Types types : {kFloat32, kFloat64, kMixed})
    for (uint32_t vocabulary : {1, 7, 256})
      for (uint32_t lastCount : {1, 2, 5}) {
        ModelT model = small();
        model.heads = 1;
        model.width = 3;
        model.vocabulary = vocabulary;
        EXPECT_FALSE(tiedParameters(model, types, lastCount));
        model.tied = true;
        std::optional<Tied> tied = tiedParameters(model, types, lastCount);
        ASSERT_TRUE(tied);
        const uint64_t e = bytesOf(types.weights);
        EXPECT_EQ(tied->bytes(), vocabulary * 3 * e);
        // The tied matrix is the first parameter of the first stage and the
        // last parameter of the last stage.
        EXPECT_EQ(tied->first_offset(), 0u);
        std::vector<StageParameter> last =
            stageParameters(model, 6 - lastCount, lastCount);
        EXPECT_EQ(last.back().parameter.name, "head.weight");
        EXPECT_EQ(tied->last_offset() + tied->bytes(),
                  parameterCount(model, 6 - lastCount, lastCount) * e);
      }
  // If the last stage has only the head, the two parameters of the head's norm
  // come before the tied matrix.
  ModelT model = small();
  model.tied = true;
  EXPECT_EQ(tiedParameters(model, kFloat64, 1)->last_offset(), 2u * 128 * 8);
  // A single stage has the matrix only once, so nothing is tied.
  EXPECT_FALSE(tiedParameters(model, kFloat64, layerCount(model)));
}

TEST(LayersTest, startsResidualProjectionsSmaller) {
  ModelT model = small();
  int projections = 0;
  for (const Parameter &parameter : layerParameters(model, 1)) {
    if (parameter.start != Initialization::Normal)
      continue;
    bool residual = parameter.name.find("projection") != std::string::npos;
    projections += residual;
    EXPECT_DOUBLE_EQ(parameter.deviation,
                     residual ? 0.02 / std::sqrt(8.0) : 0.02);
  }
  EXPECT_EQ(projections, 2);
}

TEST(LayersTest, whatIsNoMatrixDoesNotDecay) {
  auto decays = [](std::vector<int64_t> shape, Decay decay = Decay::ByShape) {
    return Parameter{.name = "p",
                     .shape = std::move(shape),
                     .start = Initialization::Ones,
                     .decay = decay}
        .decays();
  };
  EXPECT_TRUE(decays({2, 3}));
  EXPECT_TRUE(decays({2, 1, 3}));
  EXPECT_TRUE(decays({16, 3, 3, 3}));
  for (const std::vector<int64_t> &shape : std::vector<std::vector<int64_t>>{
           {}, {8}, {1, 8}, {8, 1}, {1, 1, 8}, {1, 8, 1, 1}, {1, 1}}) {
    EXPECT_FALSE(decays(shape));
    EXPECT_TRUE(decays(shape, Decay::Always));
  }
  EXPECT_FALSE(decays({2, 3}, Decay::Never));
}

TEST(LayersTest, costsFollowTheModel) {
  ModelT model = small();
  LayerCost embedding = layerCost(model, kFloat32, 8, 0);
  LayerCost block = layerCost(model, kFloat32, 8, 1);
  LayerCost head = layerCost(model, kFloat32, 8, 5);
  const int64_t m = 8 * 64;
  EXPECT_EQ(block.forwardFlops, 24 * m * 128 * 128 + 4 * m * 64 * 128);
  EXPECT_EQ(head.forwardFlops, 2 * m * 128 * 256);
  EXPECT_LT(embedding.forwardFlops, head.forwardFlops);
  EXPECT_EQ(block.inputGradientFlops, block.forwardFlops);
  EXPECT_EQ(block.weightGradientFlops, block.forwardFlops);
  // All blocks cost the same. Twice as many samples, or elements of twice the
  // size, need twice as many bytes.
  EXPECT_EQ(layerCost(model, kFloat32, 8, 4).stashBytes, block.stashBytes);
  EXPECT_EQ(layerCost(model, kFloat32, 16, 1).stashBytes, 2 * block.stashBytes);
  EXPECT_EQ(layerCost(model, kFloat64, 8, 1).stashBytes, 2 * block.stashBytes);
  model.dropout = 0.1;
  EXPECT_GT(layerCost(model, kFloat32, 8, 1).stashBytes, block.stashBytes);
}

TEST(LayersTest, sizesBoundaryAndTokens) {
  ModelT model = small();
  EXPECT_EQ(boundaryBytes(model, kFloat64, 3, 1), 3 * 64 * 128 * 8);
  EXPECT_EQ(inputBytes(model, 3), 3 * 64 * 8);
  EXPECT_EQ(labelBytes(model, 3), 3 * 64 * 8);
}

TEST(LayersTest, halvesActivationsOfBFloat16) {
  const ModelT model = small();
  EXPECT_EQ(2 * boundaryBytes(model, kMixed, 3, 1),
            boundaryBytes(model, kFloat32, 3, 1));
  // With bfloat16 activations, all stashes are half as large, except the
  // statistics of norms, the tokens, and the values between logits and loss.
  const LayerCost half = layerCost(model, kMixed, 8, 1),
                  whole = layerCost(model, kFloat32, 8, 1);
  EXPECT_EQ(half.forwardFlops, whole.forwardFlops);
  const int64_t m = 8 * 64, statistics = (4 + 4) * m * 4;
  EXPECT_EQ(2 * (half.stashBytes - statistics), whole.stashBytes - statistics);
  EXPECT_EQ(layerCost(model, kFloat32, 8, 5).stashBytes -
                layerCost(model, kMixed, 8, 5).stashBytes,
            2 * m * 128 * 2);
}

TEST(LayersTest, countsTheCopyOfParameters) {
  EXPECT_EQ(parameterBytes(kMixed, 100), 400);
  EXPECT_EQ(copyBytes(kMixed, 100), 200);
  EXPECT_EQ(parameterBytes(kFloat64, 100), 800);
  EXPECT_EQ(copyBytes(kFloat64, 100), 0);
}

TEST(LayersTest, knowsTheTypesThatModelsTrainIn) {
  for (Types types : {kFloat32, kFloat64, kMixed})
    EXPECT_EQ(checkTypes(types), "");
  EXPECT_EQ(checkTypes({DataType::BFloat16, DataType::BFloat16}),
            "expected weights of float32 or float64, got bfloat16");
  for (Types types : {Types{DataType::Float64, DataType::BFloat16},
                      Types{DataType::Float64, DataType::Float32},
                      Types{DataType::Float32, DataType::Float64}})
    EXPECT_NE(checkTypes(types), "");
}

TEST(LayersTest, acceptsAModelThatTrains) {
  EXPECT_EQ(checkModel(small()), "");
}

TEST(LayersTest, refusesAnUnknownArchitecture) {
  ModelT model = small();
  model.architecture = "llama";
  EXPECT_EQ(checkModel(model), "expected architecture 'gpt2', got 'llama'");
}

TEST(LayersTest, refusesAZeroSize) {
  for (uint32_t ModelT::*size :
       {&ModelT::layers, &ModelT::heads, &ModelT::width, &ModelT::context,
        &ModelT::vocabulary}) {
    ModelT model = small();
    model.*size = 0;
    EXPECT_NE(checkModel(model).find("got 0"), std::string::npos);
  }
}

TEST(LayersTest, refusesAWidthThatTheHeadsDoNotDivide) {
  ModelT model = small();
  model.heads = 3;
  EXPECT_EQ(checkModel(model), "expected a width divisible by the number of "
                               "heads, got width 128 and 3 heads");
}

TEST(LayersTest, refusesADropoutOutsideItsRange) {
  for (double dropout : {-0.1, 1.0, std::numeric_limits<double>::quiet_NaN()}) {
    ModelT model = small();
    model.dropout = dropout;
    EXPECT_NE(checkModel(model).find("expected dropout in [0, 1)"),
              std::string::npos);
  }
}

TEST(LayersTest, boundsLayers) {
  ModelT model = small();
  model.layers = 1 << 14;
  EXPECT_EQ(checkModel(model), "");
  ++model.layers;
  EXPECT_EQ(checkModel(model),
            "expected layers between 1 and 16384, got 16385");
}

TEST(LayersTest, saturatesInsteadOfOverflowing) {
  ModelT model = small();
  model.heads = model.width = model.context = model.vocabulary = 1 << 20;
  model.layers = 1 << 14;
  ASSERT_EQ(checkModel(model), "");
  EXPECT_EQ(layerCost(model, kFloat64, 1 << 31, 1).forwardFlops,
            std::numeric_limits<int64_t>::max());
}

} // namespace
} // namespace chimera::program
