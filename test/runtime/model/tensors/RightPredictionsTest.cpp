//===- RightPredictionsTest.cpp - Counts right predictions ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/tensors/RightPredictions.h"

#include "test/runtime/model/SmallModel.h"

#include <gtest/gtest.h>

#include <cmath>

namespace chimera::runtime::test {
namespace {

double right(const at::Tensor &logits, const std::vector<int64_t> &labels,
             at::IntArrayRef shape) {
  return countRight(logits, at::tensor(labels).view(shape)).item<double>();
}

TEST(RightPredictions, areTheLargestLogits) {
  const at::Tensor logits =
      at::tensor({1., 5., 2., 7., -1., 0., 3., 3.5, 4.}).view({3, 3});
  EXPECT_EQ(right(logits, {1, 0, 2}, {3}), 3);
  EXPECT_EQ(right(logits, {1, 1, 0}, {3}), 1);
  EXPECT_EQ(right(logits, {-100, 0, -100}, {3}), 1);
  EXPECT_EQ(right(logits.view({1, 3, 3}), {1, 0, 1}, {1, 3}), 2);
}

TEST(RightPredictions, areNotIgnoredLabels) {
  const at::Tensor logits =
      at::tensor({1., 5., 2., 7., -1., 0., 3., 3.5, 4.}).view({3, 3});
  const at::Tensor labels = at::tensor({int64_t{1}, int64_t{0}, int64_t{2}});
  for (int64_t ignored : {0, 1, 2})
    EXPECT_EQ(countRight(logits, labels, ignored).item<double>(), 2);
  EXPECT_EQ(countRight(logits, labels, 255).item<double>(), 3);
}

TEST(RightPredictions, needLabelsOfTheSameShape) {
  const at::Tensor logits = at::zeros({2, 3, 4});
  EXPECT_TRUE(std::isnan(right(logits, {0, 0}, {2})));
  EXPECT_TRUE(std::isnan(right(logits, {0, 0, 0, 0, 0, 0}, {3, 2})));
  EXPECT_EQ(right(logits, {0, 0, 0, 0, 0, 0}, {2, 3}), 6);
}

// With one label that counts, the loss is the loss of this label. It is
// smallest for the class with the largest logit.
TEST(RightPredictions, ofTheBuiltInModelHaveTheSmallestLoss) {
  for (uint32_t parts : {1u, 2u}) {
    const program::ProgramT program =
        smallProgram({}, {1 + 1 + Sizes().layers});
    Line<double> line(program);
    auto forward = [&](ForwardMode mode) {
      double sum = 0;
      const size_t bytes = line.tokens.size() * sizeof(int64_t) / parts;
      for (uint32_t part = 0; part < parts; ++part) {
        double share = 0;
        line.parts[0].stage->forward(
            {0, 0, part, parts},
            bytesOf(line.tokens).subspan(part * bytes, bytes),
            bytesOf(line.labels).subspan(part * bytes, bytes),
            bytesOf(line.parts[0].weights),
            std::as_writable_bytes(std::span(&share, 1)), mode);
        if (!std::isnan(share)) // a part in which no label counts
          sum += share;
      }
      return sum;
    };
    for (size_t position : {size_t{0}, line.labels.size() - 1}) {
      std::ranges::fill(line.labels, -100);
      int64_t best = -1, chosen = -1;
      double least = INFINITY;
      for (int64_t label = 0; label < Sizes().vocabulary; ++label) {
        line.labels[position] = label;
        if (const double loss = forward(ForwardMode::Evaluation);
            loss < least) {
          least = loss;
          best = label;
        }
        if (forward(ForwardMode::Accuracy) == 1)
          chosen = label;
      }
      EXPECT_GE(best, 0);
      EXPECT_EQ(chosen, best);
    }
  }
}

} // namespace
} // namespace chimera::runtime::test
