//===- PredictorTest.cpp - Text, token by token ---------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/Predictor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace chimera::runtime {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A model that returns the same logits for all tokens, and records the tokens
/// that it gets.
class Constant : public Predictor {
public:
  explicit Constant(std::vector<double> logits) : logits(std::move(logits)) {}
  uint64_t context() const override { return 3; }
  uint64_t vocabulary() const override { return logits.size(); }
  std::vector<double> nextLogits(std::span<const int64_t> tokens) override {
    seen.emplace_back(tokens.begin(), tokens.end());
    return logits;
  }

  std::vector<double> logits;
  std::vector<std::vector<int64_t>> seen;
};

std::vector<int64_t> generated(Predictor &model, uint64_t count,
                               const SamplingOptions &sampling) {
  std::vector<int64_t> tokens;
  generate(model, {0, 1}, count, sampling,
           [&](int64_t token) { tokens.push_back(token); });
  return tokens;
}

TEST(PredictorTest, seesTheLastOfTheTextInItsContext) {
  Constant model({0, 0, 1});
  EXPECT_EQ(generated(model, 3, {.temperature = 0}),
            (std::vector<int64_t>{2, 2, 2}));
  EXPECT_EQ(model.seen,
            (std::vector<std::vector<int64_t>>{{0, 1}, {0, 1, 2}, {1, 2, 2}}));
}

TEST(PredictorTest, drawsTokensByTheirProbabilities) {
  Constant model({std::log(1), std::log(2), -kInfinity, std::log(5)});
  const auto tokens = generated(model, 8000, {});
  std::vector<double> shares(4);
  for (int64_t token : tokens)
    shares[static_cast<size_t>(token)] += 1. / 8000;
  EXPECT_NEAR(shares[0], 1 / 8., 0.015);
  EXPECT_NEAR(shares[1], 2 / 8., 0.015);
  EXPECT_EQ(shares[2], 0);
  EXPECT_EQ(tokens, generated(model, 8000, {}));
  EXPECT_NE(tokens, generated(model, 8000, {.seed = 1}));
  // At temperature 0.5, the probabilities are proportional to the squares of 1,
  // 2 and 5: 1/30, 4/30 and 25/30.
  const auto cold = generated(model, 8000, {.temperature = 0.5});
  EXPECT_NEAR(static_cast<double>(std::ranges::count(cold, 3)) / 8000, 25 / 30.,
              0.015);
}

TEST(PredictorTest, drawsNoTokenFromTheBoundOn) {
  Constant model({0, 0, 100});
  for (int64_t token : generated(model, 100, {.vocabularyLimit = 2}))
    EXPECT_LT(token, 2);
}

TEST(PredictorTest, refusesWhatItCannotContinue) {
  Constant one({0});
  EXPECT_THROW(generated(one, 1, {}), std::runtime_error);
  Constant diverged({0, std::nan("")}), nothing({-kInfinity, -kInfinity});
  EXPECT_THROW(generated(diverged, 1, {}), std::runtime_error);
  EXPECT_THROW(generated(nothing, 1, {}), std::runtime_error);
}

} // namespace
} // namespace chimera::runtime
