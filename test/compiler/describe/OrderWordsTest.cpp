//===- OrderWordsTest.cpp - The words of an order file --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/describe/OrderWords.h"

#include <gtest/gtest.h>

using namespace chimera;

namespace {
/// Each word begins at the same place, so errors show the words of the file.
TEST(OrderWords, MayHaveTheLettersOfZeroBubblePapers) {
  EXPECT_EQ(fromZeroBubbleNotation("P0: F0 B0 W0\nP1:\t1F0 1BW0\r\n"),
            "P0: F0 I0 W0\nP1:\t1F0 1B0 \r\n");
  for (const char *text : {"", "F0 R0 I0 .3 F0-1 W0.1 |", "P0: X0 WB0 b0"})
    EXPECT_EQ(fromZeroBubbleNotation(text), text);
  EXPECT_EQ(fromZeroBubbleNotation("B0.1 BW0.0 BW"), "I0.1 B0.0  B ");
}

TEST(OrderWords, AnActionHasItsNumbers) {
  const std::optional<words::ActionWord> range = words::actionWordOf("12F3-5");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->stage, 12);
  EXPECT_EQ(range->kind, schedule::Kind::Forward);
  EXPECT_EQ(range->first, 3);
  EXPECT_EQ(range->last, 5);
  EXPECT_FALSE(range->part);
  const std::optional<words::ActionWord> part = words::actionWordOf("W7.255");
  ASSERT_TRUE(part);
  EXPECT_FALSE(part->stage);
  EXPECT_EQ(part->kind, schedule::Kind::WeightGradient);
  EXPECT_EQ(part->first, 7);
  EXPECT_EQ(part->last, 7);
  EXPECT_EQ(part->part, 255);
}

TEST(OrderWords, OtherWordsNameNoAction) {
  for (const char *text :
       {"", "F", "1", "f0", "F-1", "F5-3", "F0-", "F0.", "F0.256", "F65535",
        "65535F0", "F0 ", "F0F1", "X0", "F0.1-2"})
    EXPECT_FALSE(words::actionWordOf(text)) << text;
  EXPECT_TRUE(words::actionWordOf("65534F65534"));
}

TEST(OrderWords, JoinedActionsAreOneWord) {
  for (const char *text : {"F1+B0", "2F1", "W0+W1+W2", "1W0.0+1W0.1"})
    EXPECT_TRUE(words::namesActions(text)) << text;
  for (const char *text : {"F1+", "+B0", "F1+x", "W0++W1", "W0+W1+"})
    EXPECT_FALSE(words::namesActions(text)) << text;
}

TEST(OrderWords, ALineMayBeginWithItsWorker) {
  std::string_view line = "P12 : F0";
  EXPECT_EQ(words::takeWorker(line), 12);
  EXPECT_EQ(line, " F0");
  for (std::string_view other : {"F0", "P", "Px:", "P1 F0", "P1 = F0"}) {
    std::string_view same = other;
    EXPECT_FALSE(words::takeWorker(same)) << other;
    EXPECT_EQ(same, other);
  }
  EXPECT_TRUE(words::hasEquals("P1 = F0"));
  EXPECT_FALSE(words::hasEquals("P1: F0"));
  EXPECT_FALSE(words::hasEquals("workers=4"));
}
} // namespace
