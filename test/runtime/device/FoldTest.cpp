//===- FoldTest.cpp - The sum that all channels compute -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/Fold.h"

#include "runtime/device/BFloat16.h"
#include "runtime/system/ParallelFor.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace chimera::runtime;

namespace {
template <typename T>
std::vector<T> foldOf(ElementType type, std::vector<std::vector<T>> values) {
  std::vector<const std::byte *> pointers;
  for (const std::vector<T> &value : values)
    pointers.push_back(reinterpret_cast<const std::byte *>(value.data()));
  std::vector<T> sum(values[0].size());
  fold(type, pointers, reinterpret_cast<std::byte *>(sum.data()),
       sum.size() * sizeof(T));
  return sum;
}

TEST(Fold, AddsFromTheLeft) {
  // (1e16 + 1) + -1e16 is 0, but 1 + (1e16 + -1e16) is 1.
  EXPECT_EQ(foldOf<double>(ElementType::Float64, {{1e16}, {1.0}, {-1e16}})[0],
            0.0);
  EXPECT_EQ(foldOf<double>(ElementType::Float64, {{1e16}, {-1e16}, {1.0}})[0],
            1.0);
}

TEST(Fold, RoundsASumOfBFloat16Once) {
  // The distance from 1 to the next number is 2^-7. Half of it is lost if each
  // sum is rounded, and counts if only the last one is.
  const BFloat16 one(1.0f), half(0x1p-8f);
  EXPECT_EQ(foldOf<BFloat16>(ElementType::BFloat16, {{one}, {half}, {half}})[0],
            1 + 0x1p-7f);
  EXPECT_EQ(foldOf<BFloat16>(ElementType::BFloat16, {{one}, {half}})[0], 1.0f);
}

TEST(Fold, ScalesBFloat16) {
  std::vector<BFloat16> values(1001, BFloat16(3.0f));
  scaleElements(ElementType::BFloat16,
                std::as_writable_bytes(std::span(values)), 0.1);
  for (BFloat16 value : values)
    EXPECT_EQ(value, BFloat16(0.3f));
}

TEST(BFloat16, RoundsToTheNearestEvenNumber) {
  const auto bitsOf = [](uint32_t bits) {
    return BFloat16(std::bit_cast<float>(bits)).bits;
  };
  EXPECT_EQ(bitsOf(0x3F808000), 0x3F80); // halfway, to the even one below
  EXPECT_EQ(bitsOf(0x3F818000), 0x3F82); // halfway, to the even one above
  EXPECT_EQ(bitsOf(0x3F808001), 0x3F81);
  EXPECT_EQ(bitsOf(0xBF80FFFF), 0xBF81);
  EXPECT_EQ(bitsOf(0x00008001), 0x0001); // a subnormal number
  EXPECT_EQ(bitsOf(0x7F7FFFFF), 0x7F80); // too large: infinity
  EXPECT_EQ(bitsOf(0xFF800000), 0xFF80);
  EXPECT_EQ(bitsOf(0x7F800001), 0x7FC0); // NaN
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto value = std::bit_cast<float>(bits << 16);
    EXPECT_EQ(bitsOf(bits << 16), std::isnan(value) ? 0x7FC0 : bits);
  }
}

TEST(Fold, StartsWithTheFirstContribution) {
  // If the sum began with zero, 0 + -0 would lose the sign.
  EXPECT_TRUE(std::signbit(foldOf<float>(ElementType::Float32, {{-0.0f}})[0]));
}

TEST(Fold, WrapsIntegersAndSumsIncompleteWords) {
  std::vector<uint8_t> first(11, 0xff), second(11, 0);
  second[0] = 1;
  second[8] = 2;
  std::vector<uint8_t> sum =
      foldOf(ElementType::UInt64, std::vector{first, second});
  std::vector<uint8_t> expected(11, 0);
  expected[8] = 1;
  EXPECT_EQ(sum, expected);
}

TEST(Fold, MayWriteOverAContribution) {
  std::vector<double> a(3000, 1.0), b(3000, 2.0);
  std::vector<const std::byte *> pointers{
      reinterpret_cast<std::byte *>(a.data()),
      reinterpret_cast<std::byte *>(b.data())};
  fold(ElementType::Float64, pointers, reinterpret_cast<std::byte *>(b.data()),
       b.size() * sizeof(double));
  EXPECT_EQ(b, std::vector<double>(3000, 3.0));
}

void inFifths(int64_t count, int64_t, const RangeFunction &work) {
  for (int64_t k = 0; k < 5; ++k)
    work(count * k / 5, count * (k + 1) / 5);
}

TEST(Fold, IsTheSameHoweverThreadsShareIt) {
  const size_t count = 100003;
  std::vector<std::vector<float>> values(3, std::vector<float>(count));
  for (size_t k = 0; k < values.size(); ++k)
    for (size_t i = 0; i < count; ++i)
      values[k][i] = std::sin(static_cast<float>(i * (k + 1))) * 1e3f;
  std::vector<float> expected = values[0];
  for (size_t k = 1; k < values.size(); ++k)
    for (size_t i = 0; i < count; ++i)
      expected[i] += values[k][i];
  EXPECT_EQ(foldOf(ElementType::Float32, values), expected);
  setParallelFor(inFifths);
  EXPECT_EQ(foldOf(ElementType::Float32, values), expected);
  std::vector<float> scaled = expected;
  scaleElements(ElementType::Float32, std::as_writable_bytes(std::span(scaled)),
                0.3);
  setParallelFor(nullptr);
  for (size_t i = 0; i < count; ++i)
    ASSERT_EQ(scaled[i], static_cast<float>(expected[i] * 0.3));
}
} // namespace
