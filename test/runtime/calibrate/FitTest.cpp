//===- FitTest.cpp - Lines fitted to measured times -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/Fit.h"

#include "runtime/calibrate/MessageTimes.h"
#include "runtime/calibrate/SumTimes.h"

#include <gtest/gtest.h>

using namespace chimera::runtime;

namespace {
TEST(Fit, FindsAnExactLine) {
  std::vector<TimedSize> points;
  for (uint64_t bytes : {8, 4096, 65536, 1 << 20, 4 << 20})
    points.push_back({bytes, 5000 + 0.25 * double(bytes)});
  Line line = fitLine(points);
  EXPECT_NEAR(line.base, 5000, 1);
  EXPECT_NEAR(line.perByte, 0.25, 1e-4);
  EXPECT_LT(line.residual, 1e-6);
}

// The fit minimises relative errors, so the line also fits small messages. If
// it minimised absolute errors, small messages would hardly affect the base.
TEST(Fit, HoldsSmallOnesAsWellAsLargeOnes) {
  std::vector<TimedSize> points = {
      {8, 10'000}, {4096, 11'000}, {1 << 20, 1'300'000}, {4 << 20, 4'000'000}};
  Line line = fitLine(points);
  EXPECT_NEAR(line.base, 10'000, 2000);
  EXPECT_LT(line.residual, 0.25);
  EXPECT_GT(line.residual, 0.05);
}

TEST(Fit, HasNoNegativeParts) {
  std::vector<TimedSize> falls = {{8, 4000}, {1 << 20, 2000}};
  Line line = fitLine(falls);
  EXPECT_EQ(line.perByte, 0);
  EXPECT_GT(line.base, 2000);
  EXPECT_LT(line.base, 4000);
  std::vector<TimedSize> steep = {{1 << 20, 10'000}, {2 << 20, 40'000}};
  line = fitLine(steep);
  EXPECT_EQ(line.base, 0);
  EXPECT_GT(line.perByte, 0);
}

TEST(Fit, HasAtLeastTheGivenBase) {
  std::vector<TimedSize> points;
  for (uint64_t bytes : {64 << 10, 1 << 20, 4 << 20})
    points.push_back({bytes, 5000 + 0.25 * double(bytes)});
  EXPECT_NEAR(fitLine(points, 4000).base, 5000, 1);
  Line line = fitLine(points, 8000);
  EXPECT_EQ(line.base, 8000);
  EXPECT_LT(line.perByte, 0.25);
  EXPECT_GT(line.perByte, 0.22);
  // Here the given base is larger than all times.
  line = fitLine(points, 1e9);
  EXPECT_EQ(line.base, 1e9);
  EXPECT_EQ(line.perByte, 0);
}

TEST(Fit, OfZeroTimesIsZero) {
  std::vector<TimedSize> points = {{8, 0}, {4096, 0}, {1 << 20, 0}};
  Line line = fitLine(points);
  EXPECT_EQ(line.base, 0);
  EXPECT_EQ(line.perByte, 0);
  EXPECT_EQ(line.residual, 0);
  EXPECT_EQ(fitLine({}).base, 0);
}

// A message has several parts, for example the time of the sender. The error of
// a part is relative to the time of the whole message. So the line may be wrong
// by any factor for a small part.
TEST(Fit, MeasuresPartsByTheWhole) {
  std::vector<TimedSize> parts = {
      {8, 0, 50'000}, {4096, 3000, 60'000}, {1 << 20, 100'000, 500'000}};
  EXPECT_LT(fitLine(parts).residual, 0.06);
  for (TimedSize &part : parts)
    part.whole = 0;
  EXPECT_GT(fitLine(parts).residual, 0.3);
}

TEST(Fit, MediansIgnoreAnOutlier) {
  EXPECT_EQ(medianOf({3, 1'000'000, 1, 2, 4}), 3);
  EXPECT_EQ(medianOf({}), 0);
}

TEST(MessageCost, IsTheMeanOfBothWays) {
  // The clock of one rank is 40 ahead. So one direction seems 40 shorter, and
  // the other direction 40 longer.
  MessageCost cost = costOf(
      {.send = {10}, .up = {160, 160}, .down = {240, 240}, .receive = {30}});
  EXPECT_EQ(cost.whole, 200);
  EXPECT_EQ(cost.transit(), 160);
  EXPECT_EQ(costOf({.send = {300}, .up = {200}, .down = {}, .receive = {1}})
                .transit(),
            0);
}

// The line is fitted only to all-reduces of 64 KiB and more, because
// all-reduces of gradients determine the time of a step. An all-reduce of 8
// bytes is not on this line.
TEST(SumTimes, HaveALineThatIsRightOfGradients) {
  std::vector<TimedSize> sums = {{8, 10'000}};
  for (uint64_t bytes : {64 << 10, 256 << 10, 1 << 20, 16 << 20})
    sums.push_back({bytes, 40'000 + 0.5 * double(bytes)});
  SumLine line = fitSums(sums, 2);
  EXPECT_NEAR(line.message.base, 20'000, 1);
  EXPECT_NEAR(line.message.perByte, 0.5, 1e-6);
  EXPECT_LT(line.message.residual, 1e-6);
  // The error of the smallest sum is reported separately.
  EXPECT_EQ(line.smallest.bytes, 8u);
  EXPECT_EQ(line.smallest.nanoseconds, 10'000);
  EXPECT_NEAR(line.smallestByLine, 40'004, 1);
}

// If a link transfers the first bytes at once, the line through the large sums
// has a negative base. The base is then the time of the smallest sum.
TEST(SumTimes, TakeNoLessThanTheSmallest) {
  std::vector<TimedSize> sums = {{8, 1'200'000}};
  for (uint64_t bytes : {64 << 10, 256 << 10, 1 << 20, 16 << 20})
    sums.push_back({bytes, 25 * double(bytes) - 400'000});
  SumLine line = fitSums(sums, 2);
  EXPECT_EQ(line.message.base * 2, 1'200'000);
  EXPECT_GT(line.message.perByte, 10);
}

TEST(SumTimes, GiveTheMessageOfRabenseifner) {
  // An all-reduce of R ranks has 2 log2(R) messages one after another. Together
  // they have 2 (R-1)/R times the bytes of the sum. For R = 4: 4 messages, 3/2
  // times the bytes.
  Line message = messageOfSum({.base = 4000, .perByte = 3, .residual = 0.5}, 4);
  EXPECT_EQ(message.base, 1000);
  EXPECT_EQ(message.perByte, 2);
  EXPECT_EQ(message.residual, 0.5);
  // The logarithm is rounded up.
  EXPECT_EQ(messageOfSum({.base = 6000, .perByte = 0}, 5).base, 1000);
  EXPECT_EQ(messageOfSum({.base = 6000, .perByte = 7}, 2).perByte, 7);
}
} // namespace
