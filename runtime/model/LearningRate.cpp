//===- LearningRate.cpp - The learning rate of a step ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The order of operations is the order in transformers, because another order
// may round differently. For the same reason, CMakeLists.txt forbids to fuse a
// product and a sum into one operation.
//
//===----------------------------------------------------------------------===//

#include "runtime/model/LearningRate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

using namespace chimera;
using program::RateSchedule;

/// `part` / `whole`. 0 / 0 is 0.
static double ratio(uint64_t part, uint64_t whole) {
  return static_cast<double>(part) /
         static_cast<double>(std::max<uint64_t>(whole, 1));
}

/// Falls from 1 to 0 while `progress` rises from 0 to 1.
static double halfCosine(double progress) {
  return 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
}

/// The rate of `step` as a part of the peak. Requires a positive peak.
static double factorAt(const program::OptimizerT &optimizer, uint64_t end,
                       uint64_t step) {
  const uint64_t warmup = optimizer.warmup;
  const double peak = optimizer.learning_rate;
  const double floor = optimizer.min_lr / peak;
  auto aboveFloor = [&](double factor) {
    return factor * (1.0 - floor) + floor;
  };
  const bool isConstant = optimizer.lr_schedule == RateSchedule::Constant;
  if (!isConstant && step >= end)
    return floor;
  if (step < warmup) {
    const double rising = ratio(step, warmup);
    return optimizer.lr_schedule == RateSchedule::WarmupStableDecay
               ? aboveFloor(rising)
               : rising;
  }
  if (isConstant)
    return 1;
  switch (optimizer.lr_schedule) {
  case RateSchedule::Linear: {
    if (optimizer.min_lr == 0)
      return ratio(end - step, end - warmup);
    const double left = 1.0 - ratio(step - warmup, end - warmup);
    return ((peak - optimizer.min_lr) * left + optimizer.min_lr) / peak;
  }
  case RateSchedule::WarmupStableDecay: {
    const uint64_t left = end - step;
    if (left > optimizer.decay_steps)
      return 1;
    return aboveFloor(
        halfCosine(ratio(optimizer.decay_steps - left, optimizer.decay_steps)));
  }
  default:
    return aboveFloor(halfCosine(ratio(step - warmup, end - warmup)));
  }
}

double chimera::runtime::learningRateAt(const program::OptimizerT &optimizer,
                                        uint64_t steps, uint64_t step) {
  if (optimizer.learning_rate == 0)
    return 0;
  const uint64_t end = optimizer.lr_steps > 0 ? optimizer.lr_steps : steps;
  return optimizer.learning_rate * factorAt(optimizer, end, step);
}

std::string
chimera::runtime::noteOfShortSchedule(const program::OptimizerT &optimizer,
                                      uint64_t steps) {
  if (optimizer.lr_steps > 0 || steps == 0)
    return {};
  const bool decays = optimizer.lr_schedule == RateSchedule::WarmupStableDecay;
  const uint64_t needed =
      decays ? optimizer.warmup + optimizer.decay_steps : optimizer.warmup + 1;
  if (needed <= steps)
    return {};
  return std::string("the learning rate does not reach its peak: ") +
         (decays ? "warm-up and decay have " : "the warm-up has ") +
         program::countWithNoun(decays ? needed : optimizer.warmup, "step") +
         ", the run has " + std::to_string(steps);
}
