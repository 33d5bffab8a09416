//===- LossWeightsTest.cpp - Loss weights of micro-batches ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/model/graph/GraphStageFixture.h"

#include <algorithm>

namespace chimera::runtime {
namespace {

// Labels whose sum is the number of calls of `load` so far plus 100 times the
// micro-batch's index.
class CountedLabels : public DataSource {
public:
  void load(program::ValueKind, MicroBatch microBatch, Bytes output) override {
    auto *values = reinterpret_cast<int64_t *>(output.data());
    std::fill(values, values + output.size() / sizeof(int64_t), 0);
    values[0] = ++asked;
    values[1] = static_cast<int64_t>(100 * microBatch.index);
  }

  static inline int64_t asked = 0;
};

TEST(LossWeights, AreComputedOncePerMicroBatch) {
  program::ProgramT program = sampleProgram({3});
  CountedLabels::asked = 0;
  // If losses are means, all micro-batches have the same weight.
  auto means = withLossWeights(program, std::make_unique<CountedLabels>());
  EXPECT_EQ(means->lossWeight({.step = 1, .index = 2}), 1);
  EXPECT_EQ(CountedLabels::asked, 0);

  program.model = program::weighedPackage();
  auto sums = withLossWeights(program, std::make_unique<CountedLabels>());
  EXPECT_EQ(sums->lossWeight({.step = 0, .index = 2}), 201);
  EXPECT_EQ(sums->lossWeight({.step = 1, .index = 3}), 302);
  EXPECT_EQ(sums->lossWeight({.step = 0, .index = 2}), 201);
  // Weights of steps that are long past are not kept, so they are computed
  // again.
  EXPECT_EQ(sums->lossWeight({.step = 100, .index = 0}), 3);
  EXPECT_EQ(sums->lossWeight({.step = 0, .index = 2}), 204);
}

// Each loss term has one weight for the two micro-batches of two steps
// together. The weight of the first term is the number of labels, which is 8
// per micro-batch. The weight of the second term is the sum of the labels.
TEST(LossWeights, ScaleTheTermsOfALoss) {
  program::ProgramT program = sampleProgram({3});
  program.model = program::packageWithTwoLossTerms();
  program.micro_batches = 2;
  CountedLabels::asked = 0;
  auto data = withLossWeights(program, std::make_unique<CountedLabels>(),
                              /*together=*/2);
  std::vector<double> loaded(8 + 4 * 2);
  data->load(program::ValueKind::Labels, {.step = 1, .index = 0},
             bytesOf(loaded));
  // The first call of CountedLabels::load returned the labels themselves. Four
  // more calls compute the weights.
  const double all = 2 + 3 + 4 + 5 + 2 * 100;
  for (size_t row = 0; row < 4; ++row) {
    EXPECT_EQ(loaded[8 + 2 * row], 4 / 32.);
    EXPECT_EQ(loaded[8 + 2 * row + 1], 4 / all);
  }
  // A part of a micro-batch has fewer rows, but the same scales.
  std::vector<double> ofPart(4 + 2 * 2);
  data->load(program::ValueKind::Labels,
             {.step = 0, .index = 0, .part = 1, .parts = 2}, bytesOf(ofPart));
  EXPECT_EQ(ofPart[4], 4 / 32.);
  EXPECT_EQ(ofPart[7], 4 / all);
  // The scales contain the weights, so `weight` is 1 for all micro-batches.
  EXPECT_EQ(data->lossWeight({.step = 0, .index = 1}), 1);
}

/// Labels that are 0, and so have no weight. Only the second micro-batch of
/// step 1 has a label that is not 0.
class NoLabels : public DataSource {
public:
  void load(program::ValueKind, MicroBatch microBatch, Bytes output) override {
    std::ranges::fill(output, std::byte());
    output[0] = std::byte(microBatch.step == 1 && microBatch.index == 1);
  }
};

TEST(LossWeights, AreZeroIfAllTermsAreEmpty) {
  program::ProgramT program = sampleProgram({3});
  program.model = program::packageWithTwoLossTerms();
  program.micro_batches = 2;
  // Make the weight of the first term also the sum of the labels.
  program.model->kinds[2]->graphs->weight->outputs[0].mutate_value(1);
  auto data = withLossWeights(program, std::make_unique<NoLabels>());
  for (uint64_t index : {0, 1}) {
    EXPECT_EQ(data->lossWeight({.step = 0, .index = index}), 0);
    EXPECT_EQ(data->lossWeight({.step = 1, .index = index}), 1);
  }
}

} // namespace
} // namespace chimera::runtime
