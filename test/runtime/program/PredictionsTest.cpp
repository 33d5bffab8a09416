//===- PredictionsTest.cpp - The labels that a model predicts -------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Predictions.h"

#include "test/runtime/program/BuiltGpt2.h"
#include "test/runtime/program/SamplePackages.h"

#include <gtest/gtest.h>
#include <vector>

namespace chimera::program {
namespace {

TEST(Predictions, OfTheBuiltInModelAreItsTokens) {
  const PackageT model = builtGpt2({.context = 3});
  EXPECT_EQ(predictedField(model), 0u);
  const std::vector<int64_t> labels = {0, -100, 7, -1, 1, 2};
  EXPECT_EQ(countLabels(model, 2, std::as_bytes(std::span(labels))), 4u);
}

/// Gives the sample package logits, and labels of these types.
PackageT modelWith(const std::vector<TensorType> &labels) {
  PackageT model = *samplePackage();
  model.labels.clear();
  for (size_t i = 0; i < labels.size(); ++i)
    model.labels.push_back("label" + std::to_string(i));
  LayerGraphsT &graphs = *model.kinds[2]->graphs;
  graphs.logits = std::make_unique<GraphT>(*graphs.forward);
  graphs.labels.clear();
  for (TensorType type : labels)
    graphs.labels.push_back(perSample(type, {2}));
  return model;
}

TEST(Predictions, NeedLogitsAndOneLabelOfWholeNumbers) {
  EXPECT_EQ(predictedField(*samplePackage()), std::nullopt);
  EXPECT_EQ(predictedField(modelWith({TensorType::Int64})), 0u);
  EXPECT_EQ(predictedField(modelWith({TensorType::Float32, TensorType::Int64})),
            1u);
  EXPECT_EQ(predictedField(modelWith({TensorType::Float32})), std::nullopt);
  EXPECT_EQ(predictedField(modelWith({})), std::nullopt);
  EXPECT_EQ(predictedField(modelWith({TensorType::Int64, TensorType::Int64})),
            std::nullopt);
}

// A loss may ignore a label that could be a class, as in segmentation.
TEST(Predictions, DoNotCountIgnoredLabels) {
  for (const char *loss : {"aten::nll_loss_forward", "aten::nll_loss2d_forward",
                           "chimera::linear_cross_entropy"})
    for (int64_t ignored : {0, 255, -1, -100}) {
      PackageT model = modelWith({TensorType::Int64});
      auto call = std::make_unique<CallT>();
      call->operator_ = loss;
      for (int i = 0; i < 5; ++i)
        call->arguments.push_back(std::make_unique<ArgumentT>());
      call->arguments[4]->kind = ArgumentKind::Integer;
      call->arguments[4]->integers = {ignored};
      model.kinds[2]->graphs->forward->calls.push_back(std::move(call));
      EXPECT_EQ(ignoredLabel(model), ignored);
      const std::vector<int64_t> labels = {0, 255, -100, 3};
      EXPECT_EQ(countLabels(model, 2, std::as_bytes(std::span(labels))),
                ignored < 0 ? 3u : 2u);
    }
  EXPECT_EQ(ignoredLabel(builtGpt2({})), -100);
  EXPECT_EQ(ignoredLabel(modelWith({TensorType::Int64})), std::nullopt);
}

TEST(Predictions, AreCountedAfterOtherLabels) {
  // Two samples: first two float64 numbers of each, then two int64 numbers.
  const std::vector<int64_t> labels = {-1, -1, -1, -1, 0, -100, 3, 4};
  EXPECT_EQ(countLabels(modelWith({TensorType::Float64, TensorType::Int64}), 2,
                        std::as_bytes(std::span(labels))),
            3u);
}

} // namespace
} // namespace chimera::program
