//===- Gpt2PackageTest.cpp - GPT-2 as a package ---------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sizes and costs. test/runtime/model/graph compares the results of these
// packages with an oracle (test/oracle), and their bytes with measurements.
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Gpt2Package.h"
#include "runtime/program/Layers.h"
#include "test/runtime/program/BuiltGpt2.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace chimera::program {
namespace {

constexpr DataType kAllTypes[] = {DataType::Float32, DataType::Float64,
                                  DataType::BFloat16};

constexpr SmallGpt2 kSmall = {
    .layers = 4, .heads = 4, .width = 128, .context = 64, .vocabulary = 256};

TEST(Gpt2Package, HasThePublishedParameters) {
  SmallGpt2 sizes{.layers = 12,
                  .heads = 12,
                  .width = 768,
                  .context = 1024,
                  .vocabulary = 50257};
  // The published number of parameters of GPT-2, whose head is tied to its
  // embedding.
  constexpr int64_t kTied = 124439808;
  const PackageT own = builtGpt2(sizes);
  EXPECT_EQ(parameterCount(own, 0, layerCount(own)), kTied + 50257 * 768);
  sizes.tied = true;
  const PackageT tied = builtGpt2(sizes);
  EXPECT_EQ(parameterCount(tied, 0, layerCount(tied)), kTied);
}

TEST(Gpt2Package, IsAcceptedInAllSizesAndTypes) {
  for (DataType type : kAllTypes)
    for (uint32_t vocabulary : {1, 11, 4095, 4096, 50257})
      for (double dropout : {0.0, 0.1})
        for (bool tied : {false, true})
          for (uint32_t layers : {1, 3}) {
            const PackageT model = builtGpt2({.layers = layers,
                                              .vocabulary = vocabulary,
                                              .dropout = dropout,
                                              .tied = tied},
                                             type);
            EXPECT_EQ(checkPackage(model), "");
            EXPECT_EQ(layerCount(model), layers + 2);
            EXPECT_EQ(isTied(model), tied);
            EXPECT_TRUE(model.divisible);
          }
}

TEST(Gpt2Package, StartsResidualProjectionsSmaller) {
  int projections = 0;
  for (const Parameter &parameter : layerParameters(builtGpt2(kSmall), 1)) {
    if (parameter.start != Initialization::Normal)
      continue;
    bool residual = parameter.name.find("projection") != std::string::npos;
    projections += residual;
    EXPECT_DOUBLE_EQ(parameter.deviation,
                     residual ? 0.02 / std::sqrt(8.0) : 0.02);
  }
  EXPECT_EQ(projections, 2);
}

TEST(Gpt2Package, CostsFollowTheSizes) {
  SmallGpt2 sizes = kSmall;
  const PackageT model = builtGpt2(sizes);
  LayerCost embedding = layerCost(model, 8, 0);
  LayerCost block = layerCost(model, 8, 1);
  LayerCost head = layerCost(model, 8, 5);
  const int64_t m = 8 * 64, c = 128;
  EXPECT_EQ(embedding.forwardFlops, m * c);
  EXPECT_EQ(block.forwardFlops, 24 * m * c * c + 4 * m * 64 * c);
  EXPECT_EQ(head.forwardFlops, 2 * m * c * 256);
  // The input gradient has all four products of the attention's backward.
  EXPECT_EQ(block.inputGradientFlops, 24 * m * c * c + 8 * m * 64 * c);
  EXPECT_EQ(block.weightGradientFlops, 24 * m * c * c);
  // In units of 4 bytes. A block saves 16 activations of the width (with the
  // hidden ones of the MLP), two statistics of two norms, and a number for each
  // token and head. It keeps the input and the output gradient of each linear
  // layer, and the gradients of the norms' parameters.
  EXPECT_EQ(embedding.stashBytes, 8 * m);
  EXPECT_EQ(block.stashBytes, 4 * m * (16 * c + 4 + 4));
  EXPECT_EQ(block.weightStashBytes, 4 * (m * 16 * c + 4 * c));
  EXPECT_EQ(head.stashBytes, 4 * (m * (2 * c + 2 + 256) + 1) + 8 * m);
  EXPECT_EQ(head.weightStashBytes, 4 * (m * (c + 256) + 2 * c));
  // All blocks cost the same. Twice as many samples need twice as many bytes,
  // and so do elements of twice the size.
  EXPECT_EQ(layerCost(model, 8, 4).stashBytes, block.stashBytes);
  EXPECT_EQ(layerCost(model, 16, 1).stashBytes, 2 * block.stashBytes);
  EXPECT_EQ(layerCost(builtGpt2(sizes, DataType::Float64), 8, 1).stashBytes,
            2 * block.stashBytes);
  // Dropout saves nothing: a backward draws the same numbers again.
  sizes.dropout = 0.1;
  const PackageT drops = builtGpt2(sizes);
  for (uint32_t layer : {0, 1, 5}) {
    const LayerCost cost = layerCost(model, 8, layer),
                    dropped = layerCost(drops, 8, layer);
    EXPECT_EQ(dropped.stashBytes, cost.stashBytes) << layer;
    EXPECT_EQ(dropped.weightStashBytes, cost.weightStashBytes) << layer;
  }
}

// A head of many classes saves no logits. Its input gradient computes them
// again.
TEST(Gpt2Package, SavesNoLogitsOfManyClasses) {
  SmallGpt2 sizes = kSmall;
  sizes.vocabulary = 4096;
  const LayerCost head = layerCost(builtGpt2(sizes), 8, 5);
  const int64_t m = 8 * 64, c = 128, product = 2 * m * c * 4096;
  EXPECT_EQ(head.stashBytes, 4 * m * (2 * c + 2) + 8 * m);
  EXPECT_EQ(head.weightStashBytes, 4 * (1 + m * c + 2 * c) + 8 * m);
  EXPECT_EQ(head.forwardFlops, m * c);
  EXPECT_EQ(head.inputGradientFlops, 2 * product);
  EXPECT_EQ(head.weightGradientFlops, product);
}

TEST(Gpt2Package, HalvesActivationsOfBFloat16) {
  const PackageT whole = builtGpt2(kSmall),
                 half = builtGpt2(kSmall, DataType::BFloat16);
  EXPECT_EQ(2 * boundaryBytes(half, 3, 1), boundaryBytes(whole, 3, 1));
  // With bfloat16 activations, all stashes are half as large, except the
  // statistics of norms, the tokens, and the values between logits and loss.
  EXPECT_EQ(layerCost(half, 8, 1).forwardFlops,
            layerCost(whole, 8, 1).forwardFlops);
  const int64_t m = 8 * 64, statistics = (4 + 4) * m * 4;
  EXPECT_EQ(2 * (layerCost(half, 8, 1).stashBytes - statistics),
            layerCost(whole, 8, 1).stashBytes - statistics);
  EXPECT_EQ(layerCost(whole, 8, 5).stashBytes -
                layerCost(half, 8, 5).stashBytes,
            2 * m * 128 * 2);
}

/// The error of a GPT-2 of these sizes.
std::string refusalOf(const SmallGpt2 &sizes) {
  std::string error;
  gpt2Package(sizes.sizes(), DataType::Float32, error);
  return error;
}

TEST(Gpt2Package, RefusesAZeroSize) {
  for (uint32_t SmallGpt2::*size :
       {&SmallGpt2::layers, &SmallGpt2::heads, &SmallGpt2::width,
        &SmallGpt2::context, &SmallGpt2::vocabulary}) {
    SmallGpt2 sizes;
    sizes.*size = 0;
    EXPECT_NE(refusalOf(sizes).find("got 0"), std::string::npos);
  }
}

TEST(Gpt2Package, RefusesAWidthThatTheHeadsDoNotDivide) {
  EXPECT_EQ(refusalOf({.heads = 3, .width = 128}),
            "expected a width divisible by the number of heads, got width 128 "
            "and 3 heads");
}

TEST(Gpt2Package, RefusesADropoutOutsideItsRange) {
  for (double dropout : {-0.1, 1.0, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_NE(
        refusalOf({.dropout = dropout}).find("expected dropout in [0, 1)"),
        std::string::npos);
}

TEST(Gpt2Package, BoundsLayersAndParameters) {
  EXPECT_EQ(refusalOf({.layers = 16382}), "");
  EXPECT_EQ(refusalOf({.layers = 16383}),
            "expected layers between 1 and 16382, got 16383");
  EXPECT_NE(refusalOf({.heads = 1 << 20,
                       .width = 1 << 20,
                       .context = 1 << 20,
                       .vocabulary = 1 << 20}),
            "");
}

} // namespace
} // namespace chimera::program
