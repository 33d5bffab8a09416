//===- TokenCheckTest.cpp - The check that all tokens are the model's -----===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/TokenCheck.h"
#include "runtime/data/OpenTokens.h"
#include "test/runtime/data/DataFolder.h"

namespace chimera::runtime {
namespace {

using namespace test;

class TokenCheckTest : public DataFolder {};

// So many tokens that a check divides them among several threads.
constexpr uint64_t kCount = (uint64_t{1} << 22) + 77;

TEST_F(TokenCheckTest, tellsTheFirstTokenBeyondTheVocabulary) {
  std::vector<uint16_t> numbers(kCount, 511);
  const auto first = writeNumbers<uint16_t>("first", {1, 2, 3});
  for (uint64_t bad : {uint64_t{0}, kCount / 2, kCount - 1}) {
    numbers[bad] = 512;
    numbers[kCount - 1] = 60'000;
    const auto path = writeNumbers("numbers", numbers);
    const auto tokens =
        openTokens({first, path}, {.format = TokenFormat::UInt16});
    const std::string fault =
        "expected tokens of the model's vocabulary of 512, got " +
        std::to_string(numbers[bad]) + " as token " + std::to_string(bad) +
        " of '" + path + "'";
    for (uint32_t threads : {1, 2, 5})
      EXPECT_EQ(checkTokens(*tokens, 512, threads), fault);
    EXPECT_EQ(checkTokens(*tokens, 60'001, 2), "");
    // If the tokens are checked in three parts, the first part with a fault
    // must report the same fault as a check of all tokens.
    std::string found;
    for (uint32_t part = 0; part < 3 && found.empty(); ++part)
      found = checkTokens(*tokens, 512, 2, part, 3);
    EXPECT_EQ(found, fault);
    numbers[bad] = numbers[kCount - 1] = 511;
  }
}

TEST_F(TokenCheckTest, partsAreAllOfTheTokens) {
  for (uint64_t bad = 0; bad < 10; ++bad) {
    std::vector<uint32_t> numbers(10, 3);
    numbers[bad] = 4;
    const auto tokens = openTokens({writeNumbers("numbers", numbers)},
                                   {.format = TokenFormat::UInt32});
    for (uint32_t parts : {1, 3, 10, 17}) {
      int faults = 0;
      for (uint32_t part = 0; part < parts; ++part)
        faults += !checkTokens(*tokens, 4, 1, part, parts).empty();
      EXPECT_EQ(faults, 1) << parts;
    }
  }
}

TEST_F(TokenCheckTest, readsNothingThatCannotBeWrong) {
  const auto path = write<uint16_t>("a", 65'000, 500);
  const auto tokens = openTokens({path}, {.format = TokenFormat::UInt16});
  std::filesystem::resize_file(path, 0);
  EXPECT_EQ(checkTokens(*tokens, 65'536, 1), "");
  EXPECT_EQ(checkTokens(*tokens, 0, 1), "");
  EXPECT_THROW(checkTokens(*tokens, 65'535, 2), std::runtime_error);
}

TEST_F(TokenCheckTest, bytesOfATextToo) {
  const auto path = writeBytes("text", "abcz");
  const auto tokens = openTokens({path}, {.format = TokenFormat::Bytes});
  EXPECT_EQ(checkTokens(*tokens, 'y', 1),
            "expected tokens of the model's vocabulary of 121, got 122 as byte "
            "3 of '" +
                path + "'");
  EXPECT_EQ(checkTokens(*tokens, 256, 1), "");
}

} // namespace
} // namespace chimera::runtime
