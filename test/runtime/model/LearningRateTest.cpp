//===- LearningRateTest.cpp - Tests of the learning rate ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The shapes of the schedules, and their ends. test/e2e/schedules.py compares
// the rates with transformers' schedulers bit by bit.
//
//===----------------------------------------------------------------------===//

#include "runtime/model/LearningRate.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace chimera::runtime {
namespace {
using program::RateSchedule;

program::OptimizerT optimizer(RateSchedule schedule, uint64_t warmup = 0,
                              double minLr = 0, uint64_t decaySteps = 0) {
  program::OptimizerT optimizer;
  optimizer.learning_rate = 8;
  optimizer.lr_schedule = schedule;
  optimizer.warmup = warmup;
  optimizer.min_lr = minLr;
  optimizer.decay_steps = decaySteps;
  return optimizer;
}

/// The rates of steps 0 to `count` - 1 in a run of `steps` steps.
std::vector<double> ratesOf(const program::OptimizerT &optimizer,
                            uint64_t steps, uint64_t count) {
  std::vector<double> rates;
  for (uint64_t step = 0; step < count; ++step)
    rates.push_back(learningRateAt(optimizer, steps, step));
  return rates;
}

using Rates = std::vector<double>;

TEST(LearningRate, ConstantRisesAndStays) {
  EXPECT_EQ(ratesOf(optimizer(RateSchedule::Constant), 2, 4),
            Rates({8, 8, 8, 8}));
  EXPECT_EQ(ratesOf(optimizer(RateSchedule::Constant, 4), 2, 7),
            Rates({0, 2, 4, 6, 8, 8, 8}));
}

TEST(LearningRate, LinearFallsToTheFloorAndStays) {
  EXPECT_EQ(ratesOf(optimizer(RateSchedule::Linear), 4, 7),
            Rates({8, 6, 4, 2, 0, 0, 0}));
  EXPECT_EQ(ratesOf(optimizer(RateSchedule::Linear, 2, 4), 6, 9),
            Rates({0, 4, 8, 7, 6, 5, 4, 4, 4}));
}

TEST(LearningRate, CosineFallsToTheFloorAndStays) {
  const Rates rates = ratesOf(optimizer(RateSchedule::Cosine, 2, 4), 6, 9);
  EXPECT_EQ(rates[1], 4);
  EXPECT_EQ(rates[2], 8);
  EXPECT_TRUE(std::ranges::is_sorted(rates.begin() + 2, rates.end(),
                                     std::ranges::greater()));
  EXPECT_DOUBLE_EQ(rates[4], 6);
  EXPECT_EQ(rates[6], 4);
  EXPECT_EQ(rates[8], 4);
}

TEST(LearningRate, WsdIsConstantBetweenWarmupAndDecay) {
  const Rates rates =
      ratesOf(optimizer(RateSchedule::WarmupStableDecay, 2, 4, 2), 7, 9);
  EXPECT_EQ(Rates(rates.begin(), rates.begin() + 6), Rates({4, 6, 8, 8, 8, 8}));
  EXPECT_DOUBLE_EQ(rates[6], 6);
  EXPECT_EQ(rates[7], 4);
  EXPECT_EQ(rates[8], 4);
}

TEST(LearningRate, ItsOwnLengthReplacesTheRuns) {
  program::OptimizerT longer = optimizer(RateSchedule::Cosine, 3);
  longer.lr_steps = 20;
  EXPECT_EQ(ratesOf(longer, 5, 30),
            ratesOf(optimizer(RateSchedule::Cosine, 3), 20, 30));
}

TEST(LearningRate, ARateOfZeroStaysZero) {
  program::OptimizerT none = optimizer(RateSchedule::Cosine, 3);
  none.learning_rate = 0;
  EXPECT_EQ(ratesOf(none, 3, 5), Rates(5, 0));
}

// A schedule that does not fit into the run gives finite rates, which are not
// above the peak.
TEST(LearningRate, AShortRunCutsTheSchedule) {
  for (RateSchedule schedule :
       {RateSchedule::Constant, RateSchedule::Linear, RateSchedule::Cosine,
        RateSchedule::WarmupStableDecay})
    for (uint64_t steps = 0; steps < 12; ++steps)
      for (double floor : {0.0, 4.0}) {
        const bool decays = schedule == RateSchedule::WarmupStableDecay;
        for (double rate :
             ratesOf(optimizer(schedule, 5, floor, decays ? 6 : 0), steps, 14))
          EXPECT_TRUE(rate >= 0 && rate <= 8) << rate << " of " << steps;
      }
}

TEST(LearningRate, ATooShortRunIsNoted) {
  EXPECT_EQ(noteOfShortSchedule(optimizer(RateSchedule::Cosine, 10), 10),
            "the learning rate does not reach its peak: the warm-up has 10 "
            "steps, the run has 10");
  EXPECT_EQ(noteOfShortSchedule(
                optimizer(RateSchedule::WarmupStableDecay, 10, 0, 5), 14),
            "the learning rate does not reach its peak: warm-up and decay have "
            "15 steps, the run has 14");
  EXPECT_EQ(noteOfShortSchedule(optimizer(RateSchedule::Constant, 10), 11), "");
  EXPECT_EQ(noteOfShortSchedule(
                optimizer(RateSchedule::WarmupStableDecay, 10, 0, 5), 15),
            "");
  EXPECT_EQ(noteOfShortSchedule(optimizer(RateSchedule::Constant), 1), "");
  program::OptimizerT part = optimizer(RateSchedule::Cosine, 10);
  part.lr_steps = 100;
  EXPECT_EQ(noteOfShortSchedule(part, 5), "") << "a part of a schedule";
}

} // namespace
} // namespace chimera::runtime
