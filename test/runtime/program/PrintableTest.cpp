//===- PrintableTest.cpp - Texts that a terminal shows as they are --------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Printable.h"

#include <gtest/gtest.h>

namespace chimera::program {
namespace {

TEST(Printable, LeavesTextsInAnyLanguage) {
  for (const char *text :
       {"", "chimera \\ x", "Größe", "流水线", "\U0001f600"}) {
    EXPECT_TRUE(isPrintable(text)) << text;
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, WritesControlCharactersAsTheirBytes) {
  struct {
    std::string_view text, expected;
  } const cases[] = {
      {"\x1b[2J", "\\x1b[2J"},
      {"a\nb\t\x7f", "a\\x0ab\\x09\\x7f"},
      {std::string_view("\0", 1), "\\x00"},
      // C1 control characters, a line separator, and characters that change the
      // direction of text, all in UTF-8.
      {"\u009b1m", "\\xc2\\x9b1m"},
      {"\u2028", "\\xe2\\x80\\xa8"},
      {"\u202e", "\\xe2\\x80\\xae"},
      {"\u2066", "\\xe2\\x81\\xa6"},
  };
  for (const auto &[text, expected] : cases) {
    EXPECT_FALSE(isPrintable(text));
    EXPECT_EQ(printable(text), expected);
  }
}

TEST(Printable, WritesWhatIsNoUtf8AsBytes) {
  struct {
    std::string_view text, expected;
  } const cases[] = {
      {"\xff", "\\xff"},
      {"\xc3(", "\\xc3("},
      {"a\xe2\x82", "a\\xe2\\x82"},
      {"\xc0\xaf", "\\xc0\\xaf"},                   // overlong '/'
      {"\xe0\x80\xaf", "\\xe0\\x80\\xaf"},          // overlong '/'
      {"\xf0\x80\x80\xaf", "\\xf0\\x80\\x80\\xaf"}, // overlong '/'
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},          // half of a surrogate pair
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}, // after the last code point
  };
  for (const auto &[text, expected] : cases) {
    EXPECT_FALSE(isPrintable(text));
    EXPECT_EQ(printable(text), expected);
  }
}

} // namespace
} // namespace chimera::program
