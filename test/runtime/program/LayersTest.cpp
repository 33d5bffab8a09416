//===- LayersTest.cpp - Parameters, bytes and costs of a model's layers ---===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// test/runtime/model/graph/StashTest.cpp compares the stash bytes with
// measurements.
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Layers.h"

#include "test/runtime/program/BuiltGpt2.h"

#include <gtest/gtest.h>

#include <set>

namespace chimera::program {
namespace {

constexpr Types kFloat32{DataType::Float32, DataType::Float32};
constexpr Types kFloat64{DataType::Float64, DataType::Float64};
constexpr Types kMixed{DataType::Float32, DataType::BFloat16};
constexpr Types kBFloat16{DataType::BFloat16, DataType::BFloat16};

PackageT small(DataType type = DataType::Float32) {
  return builtGpt2(
      {.layers = 4, .heads = 4, .width = 128, .context = 64, .vocabulary = 256},
      type);
}

TEST(LayersTest, countsSlicesThatAddUp) {
  PackageT model = small();
  EXPECT_EQ(layerCount(model), 6u);
  EXPECT_EQ(parameterCount(model, 0, 2) + parameterCount(model, 2, 4),
            parameterCount(model, 0, 6));
  EXPECT_EQ(parameterCount(model, 3, 0), 0);
}

TEST(LayersTest, namesAreUniqueInALayer) {
  PackageT model = small();
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
      const PackageT model = builtGpt2({.layers = 4,
                                        .heads = 1,
                                        .width = 3,
                                        .context = 64,
                                        .vocabulary = vocabulary,
                                        .tied = tied});
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
  for (Types types : {kFloat32, kFloat64, kMixed, kBFloat16})
    for (uint32_t vocabulary : {1, 7, 256})
      for (uint32_t lastCount : {1, 2, 5}) {
        SmallGpt2 gpt2{
            .layers = 4, .heads = 1, .width = 3, .vocabulary = vocabulary};
        PackageT model = builtGpt2(gpt2, types.activations);
        EXPECT_FALSE(tiedParameters(model, types, lastCount));
        gpt2.tied = true;
        model = builtGpt2(gpt2, types.activations);
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
  const PackageT model =
      builtGpt2({.width = 128, .tied = true}, DataType::Float64);
  EXPECT_EQ(tiedParameters(model, kFloat64, 1)->last_offset(), 2u * 128 * 8);
  // A single stage has the matrix only once, so nothing is tied.
  EXPECT_FALSE(tiedParameters(model, kFloat64, layerCount(model)));
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

TEST(LayersTest, sizesBoundaryAndTokens) {
  const PackageT model = small(DataType::Float64);
  EXPECT_EQ(boundaryBytes(model, 3, 1), 3 * 64 * 128 * 8);
  EXPECT_EQ(inputBytes(model, 3), 3 * 64 * 8);
  EXPECT_EQ(labelBytes(model, 3), 3 * 64 * 8);
}

TEST(LayersTest, countsTheCopyOfParameters) {
  EXPECT_EQ(parameterBytes(kMixed, 100), 400);
  EXPECT_EQ(copyBytes(kMixed, 100), 200);
  EXPECT_EQ(parameterBytes(kFloat64, 100), 800);
  EXPECT_EQ(copyBytes(kFloat64, 100), 0);
  EXPECT_EQ(parameterBytes(kBFloat16, 100), 200);
  EXPECT_EQ(copyBytes(kBFloat16, 100), 0);
}

TEST(LayersTest, knowsTheTypesThatModelsTrainIn) {
  for (Types types : {kFloat32, kFloat64, kMixed, kBFloat16})
    EXPECT_EQ(checkTypes(types), "");
  for (Types types : {Types{DataType::Float64, DataType::BFloat16},
                      Types{DataType::BFloat16, DataType::Float32},
                      Types{DataType::Float64, DataType::Float32},
                      Types{DataType::Float32, DataType::Float64}})
    EXPECT_NE(checkTypes(types), "");
}

} // namespace
} // namespace chimera::program
