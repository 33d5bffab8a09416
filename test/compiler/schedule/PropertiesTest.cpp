//===- PropertiesTest.cpp - What holds of every schedule -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Every scheme with every choice of options, D from 2 to 32, N from 1 to 4D+3.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Bounds.h"
#include "compiler/schedule/Verify.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace chimera::schedule {
namespace {

class EverySchedule : public testing::TestWithParam<int32_t> {
protected:
  template <typename Check> void forEachCase(Check check) {
    int32_t d = GetParam();
    for (const Scheme &scheme : schemes())
      for (const SchemeOptions &options : choices(scheme, d))
        for (int32_t n = 1; n <= 4 * d + 3; ++n) {
          if (!scheme.check(d, n, options).empty())
            continue;
          Case c = makeCase(scheme.name, d, n, {4, 5, 2, 3}, false, options);
          check(c, nameOf(scheme, d, n, options));
          if (HasFatalFailure())
            return;
        }
  }
};

/// Valid, complete, and never below a bound: without messages and with.
TEST_P(EverySchedule, IsValidAndAboveItsBounds) {
  forEachCase([](Case &c, const std::string &name) {
    ASSERT_EQ(check(c.problem), "") << name;
    ASSERT_EQ(checkPipelines(*c.scheme, c.problem, c.options), "") << name;
    ASSERT_EQ(messages(verify(c.problem, c.schedule)), "") << name;
    for (int64_t alpha : {0, 3}) {
      c.problem.link.alpha = alpha;
      Timing timing = simulate(c.problem, c.schedule);
      ASSERT_TRUE(timing.complete) << name;
      for (const Bound &bound : bounds(c.problem))
        ASSERT_GE(timing.makespan, bound.time) << name << " " << bound.name;
    }
  });
}

/// The same with split backwards.
TEST_P(EverySchedule, IsValidWithSplitBackwards) {
  forEachCase([](Case &c, const std::string &name) {
    c.problem.splitBackward = true;
    c.schedule = makeSchedule(*c.scheme, c.problem, c.options);
    ASSERT_EQ(messages(verify(c.problem, c.schedule)), "") << name;
    Timing timing = simulate(c.problem, c.schedule);
    ASSERT_TRUE(timing.complete) << name;
    ASSERT_GE(timing.makespan, best(bounds(c.problem)).time) << name;
  });
}

/// Peaks as caps are kept, and the makespan is above what they allow; one less
/// is not kept.
TEST_P(EverySchedule, KeepsItsPeaks) {
  forEachCase([](Case &c, const std::string &name) {
    c.problem.bytes.assign(c.problem.stages.size(), {0, 0, 1, 0});
    Timing timing = simulate(c.problem, c.schedule);
    c.problem.memoryCaps = timing.peakBytes;
    ASSERT_EQ(messages(verify(c.problem, c.schedule)), "") << name;
    ASSERT_TRUE(std::equal(timing.peakBytes.begin(), timing.peakBytes.end(),
                           timing.peakActivations.begin()))
        << name;
    ASSERT_GE(timing.makespan, best(bounds(c.problem)).time) << name;
    for (int64_t &cap : c.problem.memoryCaps)
      --cap;
    ASSERT_EQ(verify(c.problem, c.schedule).size(), c.problem.memoryCaps.size())
        << name;
  });
}

/// Chimera holds up to D micro-batches, D-1 for odd D, and D - D/2f + 1 at
/// least where N fills a unit; with doubling twice that.
TEST_P(EverySchedule, HoldsWhatChimeraStates) {
  int32_t d = GetParam();
  forEachCase([&](Case &c, const std::string &name) {
    if (std::string_view(c.scheme->name) != "chimera")
      return;
    Timing timing = simulate(c.problem, c.schedule);
    auto [least, most] = std::ranges::minmax(timing.peakActivations);
    int32_t unit = d - d % 2;
    bool doubles = c.options.concatenation == Concatenation::Doubling ||
                   c.options.concatenation == Concatenation::FineTunedDoubling;
    int32_t times = doubles ? 2 : 1;
    ASSERT_LE(most, times * unit) << name;
    int32_t share = d / c.options.pipelines;
    int32_t n = c.problem.microBatches();
    bool full = d % 2 == 0 && n >= times * d;
    bool pairs = c.options.pipelines == 2 && n % d == 0;
    int32_t stated = times == 1 ? d - share + 1
                     : pairs    ? 3 * d / 2 + 1
                                : 2 * (d - share + 1);
    ASSERT_TRUE(!full || least >= stated) << name << ": " << least;
  });
}

INSTANTIATE_TEST_SUITE_P(Properties, EverySchedule, testing::Range(2, 33),
                         testing::PrintToStringParamName());

} // namespace
} // namespace chimera::schedule
