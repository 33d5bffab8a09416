//===- TokensTest.cpp - Sequences of tokens in files ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/OpenTokens.h"
#include "runtime/data/TextData.h"
#include "test/runtime/data/DataFolder.h"
#include "test/runtime/model/SmallModel.h"
#include "test/runtime/program/SamplePackages.h"

#include <optional>

namespace chimera::runtime {
namespace {

using namespace test;

class TokensTest : public DataFolder {};

TEST_F(TokensTest, severalFilesAreOneSequence) {
  const auto a = write<uint16_t>("a", 1000, 5),
             b = write<uint16_t>("b", 1005, 1),
             c = write<uint16_t>("c", 1006, 10);
  auto tokens = openTokens({a, b, c}, {.format = TokenFormat::UInt16});
  EXPECT_EQ(tokens->count(), 16u);
  EXPECT_EQ(tokens->tokenBound(), 65536u);
  for (uint64_t first = 0; first < 16; ++first)
    for (size_t count = 0; first + count <= 16; ++count) {
      std::vector<int64_t> expected(count);
      std::iota(expected.begin(), expected.end(),
                1000 + static_cast<int64_t>(first));
      EXPECT_EQ(read(*tokens, first, count), expected);
    }
}

TEST_F(TokensTest, largeNumbersAreNotSigned) {
  auto tokens = openTokens({write<uint32_t>("a", 4000000000u, 3)},
                           {.format = TokenFormat::UInt32});
  EXPECT_EQ(read(*tokens, 1, 2),
            (std::vector<int64_t>{4000000001, 4000000002}));
}

TEST_F(TokensTest, readsLlmcHeaders) {
  auto narrow = openTokens({write<uint16_t>("a", 7, 600, 20240520)}, {});
  EXPECT_EQ(narrow->count(), 600u);
  EXPECT_EQ(read(*narrow, 0, 2), (std::vector<int64_t>{7, 8}));
  auto wide = openTokens({write<uint32_t>("b", 70000, 9, 20240801, 7)}, {});
  EXPECT_EQ(read(*wide, 8, 1), (std::vector<int64_t>{70008}));
  // A file without a header is read as a text, whose tokens are bytes.
  EXPECT_EQ(openTokens({write<uint8_t>("c", 65, 3)}, {.vocabulary = 256})
                ->tokenBound(),
            256u);
}

TEST_F(TokensTest, digestsTellTokensApart) {
  auto digest = [&](uint32_t first, uint32_t count) {
    return openTokens({write<uint16_t>("a", first, count)},
                      {.format = TokenFormat::UInt16})
        ->digest();
  };
  EXPECT_EQ(digest(1, 50), digest(1, 50));
  EXPECT_NE(digest(1, 50), digest(2, 50));
  EXPECT_NE(digest(1, 50), digest(1, 51));
}

TEST_F(TokensTest, refusesWhatIsNotOfTheFormat) {
  EXPECT_NE(refusal({(folder / "none").string()}, TokenFormat::UInt16)
                .find("No such file"),
            std::string::npos);
  EXPECT_NE(
      refusal({folder.string()}, TokenFormat::UInt16).find("Is a directory"),
      std::string::npos);
  EXPECT_NE(refusal({write<uint8_t>("odd", 0, 3)}, TokenFormat::UInt16)
                .find("a whole number of tokens of 2 bytes, got 3 bytes"),
            std::string::npos);
  EXPECT_NE(refusal({write<uint8_t>("empty", 0, 0)}, TokenFormat::UInt16)
                .find("at least one token"),
            std::string::npos);
  const auto narrow = write<uint16_t>("narrow", 0, 600, 20240520);
  EXPECT_NE(refusal({narrow}, TokenFormat::UInt32)
                .find("expected numbers of 32 bits, its header says others"),
            std::string::npos);
  std::filesystem::resize_file(narrow, 1024 + 2 * 599);
  EXPECT_NE(refusal({narrow}, TokenFormat::Auto)
                .find("expected the 600 tokens that its header says, got 599"),
            std::string::npos);
  EXPECT_NE(
      refusal({write<uint16_t>("old", 0, 600, 20240520, 9)}, TokenFormat::Auto)
          .find("got version 9"),
      std::string::npos);
  const auto text = write<uint8_t>("text", 65, 3);
  EXPECT_NE(refusal({text, text}, TokenFormat::Auto)
                .find("expected one text to train on"),
            std::string::npos);
  EXPECT_NE(refusal({write<uint8_t>("long", 0, 1001)}, TokenFormat::Bytes)
                .find("expected at most 1000 bytes"),
            std::string::npos);
}

// A model whose vocabulary is not 256 probably expects other tokens than bytes.
// It would learn nothing from bytes.
TEST_F(TokensTest, bytesAreTokensOnlyForAVocabularyOf256OrByOption) {
  const auto text = write<uint8_t>("text", 65, 26);
  EXPECT_EQ(refusal({text}, TokenFormat::Auto, 256), "(accepted)");
  for (uint64_t vocabulary : {255, 257, 512, 0}) {
    const std::string reason = refusal({text}, TokenFormat::Auto, vocabulary);
    for (const char *part :
         {vocabulary ? "with a vocabulary of " : "with an unknown vocabulary",
          "--tokens uint16 or uint32", "chimera-tokens", "--tokens bytes"})
      EXPECT_NE(reason.find(part), std::string::npos) << reason;
    EXPECT_EQ(refusal({text}, TokenFormat::Bytes, vocabulary), "(accepted)");
  }
  // If neither of two files states its format, the error names the first one.
  EXPECT_NE(refusal({text, text}, TokenFormat::Auto, 512)
                .find("with a vocabulary of 512"),
            std::string::npos);
}

TEST_F(TokensTest, textHasFewZeros) {
  const std::string line(99, 'x');
  const auto few = writeBytes("few", line + '\0'),
             many = writeBytes("many", line + std::string(2, '\0')),
             zeros = writeBytes("zeros", std::string(300, '\0'));
  EXPECT_EQ(refusal({few}, TokenFormat::Auto), "(accepted)");
  EXPECT_NE(refusal({many}, TokenFormat::Auto)
                .find("got bytes of which 2 of 101 are 0: give --tokens"),
            std::string::npos);
  EXPECT_NE(refusal({zeros}, TokenFormat::Auto).find("300 of 300 are 0"),
            std::string::npos);
  EXPECT_EQ(refusal({zeros}, TokenFormat::Bytes), "(accepted)");
}

TEST_F(TokensTest, halvesOfWiderNumbersAreNoticed) {
  const auto wide = write<uint32_t>("wide", 1, 200),
             widest = write<uint64_t>("widest", 1, 200);
  EXPECT_NE(refusal({wide}, TokenFormat::UInt16)
                .find("upper half of one of 32 bits: give --tokens uint32"),
            std::string::npos);
  EXPECT_EQ(refusal({wide}, TokenFormat::UInt32), "(accepted)");
  EXPECT_NE(refusal({widest}, TokenFormat::UInt32)
                .find("upper half of one of 64 bits: write it as uint32"),
            std::string::npos);
  EXPECT_NE(refusal({widest}, TokenFormat::UInt16)
                .find("upper half of one of 64 bits: write it as uint32"),
            std::string::npos);
  // If 32-bit tokens exceed 16 bits, their upper halves are not all 0, but they
  // are small.
  const auto large = write<uint32_t>("large", 65000, 2000);
  EXPECT_NE(refusal({large}, TokenFormat::UInt16, 128'000)
                .find("upper half of one of 32 bits"),
            std::string::npos);
  EXPECT_EQ(refusal({large}, TokenFormat::UInt16, 60'000), "(accepted)");
  // trustPlainNumbers turns this check off. A few such tokens are accepted,
  // because they may occur by chance.
  EXPECT_NO_THROW(openTokens(
      {wide}, {.format = TokenFormat::UInt16, .trustPlainNumbers = true}));
  EXPECT_EQ(refusal({write<uint32_t>("short", 1, 31)}, TokenFormat::UInt16),
            "(accepted)");
  EXPECT_EQ(refusal({writeBytes("zeros", std::string(800, '\0'))},
                    TokenFormat::UInt16),
            "(accepted)");
}

TEST_F(TokensTest, anEmptyFileIsNamedSo) {
  EXPECT_NE(refusal({write<uint8_t>("none", 0, 0)}, TokenFormat::Auto, 50'257)
                .find("expected tokens, got '" + (folder / "none").string() +
                      "', which is empty"),
            std::string::npos);
}

TEST_F(TokensTest, pairsOfNarrowerNumbersAreNoticed) {
  const auto narrow = write<uint16_t>("narrow", 1, 200);
  EXPECT_NE(refusal({narrow}, TokenFormat::UInt32, 512)
                .find("looks like two tokens of 16 bits: give --tokens uint16"),
            std::string::npos);
  EXPECT_EQ(refusal({narrow}, TokenFormat::UInt16, 512), "(accepted)");
  EXPECT_NO_THROW(openTokens({narrow}, {.format = TokenFormat::UInt32,
                                        .vocabulary = 512,
                                        .trustPlainNumbers = true}));
  // If the vocabulary is large, tokens that look like pairs of 16-bit tokens
  // are accepted, because they may be correct. A few such tokens are always
  // accepted, because they may occur by chance.
  EXPECT_EQ(refusal({narrow}, TokenFormat::UInt32, uint64_t{1} << 32),
            "(accepted)");
  EXPECT_EQ(
      refusal({write<uint16_t>("short", 1, 62)}, TokenFormat::UInt32, 512),
      "(accepted)");
  // A few tokens beyond the vocabulary are accepted here. The check of all
  // tokens (checkTokens) reports them.
  EXPECT_EQ(refusal({write<uint32_t>("few", 99'600, 1000)}, TokenFormat::UInt32,
                    100'257),
            "(accepted)");
}

TEST_F(TokensTest, textIsNoPlainNumbers) {
  std::string text, wide;
  for (int i = 0; i < 20; ++i)
    text += "This is a text.\n";
  for (char each : text)
    wide += {each, '\0'};
  for (const std::string &file :
       {writeBytes("text", text), writeBytes("wide", wide)}) {
    EXPECT_NE(refusal({file}, TokenFormat::UInt16, 50'257)
                  .find("expected plain numbers, got text"),
              std::string::npos);
    EXPECT_NO_THROW(openTokens({file}, {.format = TokenFormat::UInt16,
                                        .vocabulary = 50'257,
                                        .trustPlainNumbers = true}));
  }
  // If the vocabulary is 256, tokens may be characters.
  EXPECT_EQ(refusal({writeBytes("wide", wide)}, TokenFormat::UInt16, 256),
            "(accepted)");
}

TEST_F(TokensTest, aFileWithoutAHeaderIsNotReadAsTheOneBefore) {
  const auto llmc = write<uint16_t>("llmc", 0, 600, 20240520),
             plain = write<uint16_t>("plain", 1000, 600);
  EXPECT_NE(refusal({llmc, plain}, TokenFormat::Auto)
                .find("plain': expected a file with a header or an index"),
            std::string::npos);
  EXPECT_EQ(refusal({llmc, plain}, TokenFormat::UInt16), "(accepted)");
}

TEST_F(TokensTest, aFileThatWasNotWrittenToItsEndIsNoticed) {
  const auto file = [&](const char *name, size_t tokens, size_t zeros) {
    std::vector<uint16_t> all(tokens + zeros);
    std::iota(all.begin(), all.begin() + static_cast<ptrdiff_t>(tokens),
              uint16_t{1});
    return writeBytes(name,
                      std::string(reinterpret_cast<const char *>(all.data()),
                                  all.size() * sizeof(uint16_t)));
  };
  EXPECT_NE(refusal({file("cut", 5000, 1100)}, TokenFormat::UInt16)
                .find("the last 1024 of 6100 are all 0"),
            std::string::npos);
  const auto zeros = file("zeros", 0, 200'000);
  EXPECT_NE(refusal({zeros}, TokenFormat::UInt16)
                .find("the last 20000 of 200000 are all 0"),
            std::string::npos);
  EXPECT_NO_THROW(openTokens(
      {zeros}, {.format = TokenFormat::UInt16, .trustPlainNumbers = true}));
  // Files whose zeros are only padding at the end are accepted.
  for (const auto &padded :
       {file("few", 500, 1000), file("long", 50'000, 5000)})
    EXPECT_EQ(refusal({padded}, TokenFormat::UInt16), "(accepted)");
}

TEST_F(TokensTest, aFileThatBecomesShorterIsAnError) {
  const auto path = write<uint16_t>("a", 0, 100);
  auto tokens = openTokens({path}, {.format = TokenFormat::UInt16});
  std::filesystem::resize_file(path, 100);
  EXPECT_EQ(read(*tokens, 49, 1), std::vector<int64_t>{49});
  EXPECT_THROW(read(*tokens, 49, 2), std::runtime_error);
}

TEST_F(TokensTest, aHeaderThatIsCutIsNoToken) {
  const auto path = write<uint16_t>("a", 0, 600, 20240520);
  std::filesystem::resize_file(path, 512);
  for (TokenFormat format : {TokenFormat::Auto, TokenFormat::UInt16})
    EXPECT_NE(refusal({path}, format)
                  .find("expected a header of 1024 bytes, got a file of 512"),
              std::string::npos);
}

TEST_F(TokensTest, aRefusalClosesAllFiles) {
  const auto good = write<uint16_t>("good", 0, 5),
             odd = write<uint8_t>("odd", 0, 3);
  auto nextFile = [] {
    const int file = dup(0);
    close(file);
    return file;
  };
  const int before = nextFile();
  EXPECT_NE(refusal({good, odd}, TokenFormat::UInt16), "(accepted)");
  EXPECT_EQ(nextFile(), before);
}

TEST_F(TokensTest, masksAsBertDoes) {
  program::ProgramT program =
      smallProgram({.context = 8, .vocabulary = 5000}, {4});
  constexpr int kSamples = 4000;
  program.micro_batches = kSamples / program.micro_batch_size;
  const auto path = write<uint16_t>("a", 0, 4000);
  TextData data(openTokens({path}, {.format = TokenFormat::UInt16}), program,
                0.1, {.masking = Masking{.token = 4999, .rate = 0.25}},
                LastBatch::Fill);
  int chosen = 0, masked = 0, kept = 0, others = 0;
  std::vector<int64_t> tokens(8), labels(8), again(8);
  for (int sample = 0; sample < kSamples; ++sample) {
    const MicroBatch microBatch{.step = 3,
                                .index = static_cast<uint64_t>(sample)};
    data.load(program::ValueKind::Tokens, microBatch, bytesOf(tokens));
    data.load(program::ValueKind::Labels, microBatch, bytesOf(labels));
    data.load(program::ValueKind::Tokens, microBatch, bytesOf(again));
    ASSERT_EQ(tokens, again);
    // In this text, each token is its position. So find the start of the sample
    // from a token that is not masked.
    std::optional<int64_t> begin;
    for (size_t i = 0; i < 8; ++i)
      if (labels[i] == kIgnored)
        begin = tokens[i] - static_cast<int64_t>(i);
    if (!begin)
      continue;
    for (size_t i = 0; i < 8; ++i) {
      const int64_t original = *begin + static_cast<int64_t>(i);
      if (labels[i] == kIgnored) {
        EXPECT_EQ(tokens[i], original);
        continue;
      }
      EXPECT_EQ(labels[i], original);
      ++chosen;
      masked += tokens[i] == 4999;
      kept += tokens[i] == original;
      others += tokens[i] != 4999 && tokens[i] != original;
    }
  }
  EXPECT_NEAR(chosen / (8.0 * kSamples), 0.25, 0.01);
  EXPECT_NEAR(masked / double(chosen), 0.8, 0.02);
  // A token is replaced by a random token of the sample, which has eight. In
  // one of eight cases this is the same token.
  EXPECT_NEAR(others / double(chosen), 0.1 * 7 / 8, 0.02);
  EXPECT_NEAR(kept / double(chosen), 0.1 + 0.1 / 8, 0.02);
}

TEST_F(TokensTest, windowsAreOfTokens) {
  program::ProgramT program =
      smallProgram({.context = 8, .vocabulary = 1100}, {4});
  const auto path = write<uint16_t>("a", 1000, 100);
  auto open = [&] {
    return openTokens({path}, {.format = TokenFormat::UInt16});
  };
  TextData data(open(), program, 0.2);
  EXPECT_EQ(data.trainingTokens(), 80);
  std::vector<int64_t> tokens(16), labels(16);
  data.load(program::ValueKind::Tokens, {}, bytesOf(tokens));
  data.load(program::ValueKind::Labels, {}, bytesOf(labels));
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_GE(tokens[i], 1000);
    EXPECT_LT(labels[i], 1080);
    EXPECT_EQ(labels[i], tokens[i] + 1);
  }
  // Each token occurs once in the training part.
  EXPECT_NEAR(data.unigramLoss(data, 3), -std::log(1.0 / (80 + 1100)), 1e-12);
  setGpt2(program, {.context = 8, .vocabulary = 1000});
  TextData small(open(), program, 0.2);
  try {
    small.load(program::ValueKind::Tokens, {}, bytesOf(tokens));
    FAIL();
  } catch (const std::runtime_error &error) {
    EXPECT_EQ(std::string(error.what())
                  .find("expected tokens of the model's vocabulary of 1000, "
                        "got 10"),
              0u)
        << error.what();
  }
}

TEST_F(TokensTest, aModelThatSaysNoVocabularyHasTheLargestTokens) {
  program::ProgramT program;
  program.micro_batches = program.data_parallel = 1;
  program.micro_batch_size = 2;
  program.model = program::samplePackage();
  // The package looks up its tokens with another operator than an embedding, so
  // its vocabulary is unknown.
  program.model->kinds[0]->graphs->forward->calls[0]->operator_ =
      "aten::index_select";
  const auto path = write<uint32_t>("a", 4'000'000'000u, 100);
  TextData data(openTokens({path}, {.format = TokenFormat::UInt32}), program,
                0.2);
  EXPECT_NEAR(data.unigramLoss(data, 3),
              -std::log(1.0 / (80 + 4'000'000'100.0)), 1e-12);
}

} // namespace
} // namespace chimera::runtime
