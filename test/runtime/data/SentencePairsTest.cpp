//===- SentencePairsTest.cpp - Pairs of sentences of a text ---------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/OpenTokens.h"
#include "runtime/program/Package.h"
#include "test/runtime/data/TextDataFixture.h"
#include "test/runtime/program/SamplePackages.h"

#include <algorithm>
#include <set>

namespace chimera::runtime {
namespace {

using namespace test;

class SentencePairsTest : public TextDataTest {};

/// A program with a model that has the inputs and labels of BERT.
program::ProgramT programOfPairs() {
  program::ProgramT program = smallProgram({.context = 8}, {4});
  program.micro_batches = 500; // so a mini-batch has 1000 samples
  program.model = program::packageWithTwoLossTerms();
  program::PackageT &package = *program.model;
  package.inputs = {program::kInputIds, program::kTokenTypeIds,
                    program::kAttentionMask};
  package.labels = {program::kNextSentenceLabel, program::kLabels,
                    program::kLossScales};
  package.kinds[0]->parameters[0]->shape[0] = 304; // the vocabulary
  using program::TensorType;
  program::setFields(package.kinds[0]->graphs->inputs,
                     {{TensorType::Int64, {8}},
                      {TensorType::Int32, {8}},
                      {TensorType::Boolean, {8}}});
  program::setFields(package.kinds[2]->graphs->labels,
                     {{TensorType::Int64, {}},
                      {TensorType::Int64, {8}},
                      {TensorType::Float64, {2}}});
  return program;
}

constexpr TokenSampleOptions kPairs = {.masking =
                                           Masking{.token = 300, .rate = 0},
                                       .pairing = Pairing{301, 302, 303}};

// Each sample is [CLS] A [SEP] B [SEP] and [PAD]s, where A and B are sentences.
// In memory, each field of the samples follows the previous field.
TEST_F(SentencePairsTest, makesPairsOfSentences) {
  writeRamp(250);
  const program::ProgramT ofPairs = programOfPairs();
  auto text = [&] {
    return openTokens({path},
                      {.format = TokenFormat::Bytes, .mostBytes = 1000});
  };
  TextData data(text(), ofPairs, 0.1, kPairs, LastBatch::Fill);
  EXPECT_FALSE(data.predictsTokensAlone());
  constexpr size_t kRows = 1000;
  std::vector<std::byte> in(kRows * 8 * (8 + 4 + 1)),
      out(kRows * 8 * (1 + 8 + 2));
  data.load(program::ValueKind::Tokens, {.step = 1, .index = 0}, in);
  data.load(program::ValueKind::Labels, {.step = 1, .index = 0}, out);
  const auto *tokens = reinterpret_cast<const int64_t *>(in.data());
  const auto *segments =
      reinterpret_cast<const int32_t *>(in.data() + kRows * 64);
  const auto *seen = reinterpret_cast<const uint8_t *>(in.data() + kRows * 96);
  const auto *elsewhere = reinterpret_cast<const int64_t *>(out.data());
  const int64_t *labels = elsewhere + kRows;
  size_t follow = 0, padded = 0;
  for (size_t row = 0; row < kRows; ++row) {
    const int64_t *sample = tokens + 8 * row;
    EXPECT_EQ(sample[0], 301);
    const auto end =
        static_cast<size_t>(std::find(sample, sample + 8, 303) - sample);
    const auto middle =
        static_cast<size_t>(std::find(sample, sample + 8, 302) - sample);
    ASSERT_GT(middle, 1u);
    ASSERT_LT(middle + 1, end - 1);
    EXPECT_EQ(sample[end - 1], 302);
    for (size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(segments[8 * row + i], i > middle && i < end);
      EXPECT_EQ(seen[8 * row + i], i < end);
      EXPECT_EQ(labels[8 * row + i], kIgnored); // no token is masked
      if (i > 1 && i != middle && i != middle + 1 && i + 1 < end) {
        EXPECT_EQ(sample[i], sample[i - 1] + 1); // as in writeRamp
      }
      EXPECT_LT(std::min(sample[i], int64_t{300}), i < end ? 301 : 304);
    }
    const bool follows = sample[middle + 1] == sample[middle - 1] + 1;
    // If B is a random sentence (elsewhere is 1), it may follow A by chance.
    EXPECT_TRUE(follows || elsewhere[row] == 1);
    follow += elsewhere[row] == 0;
    padded += end < 8;
  }
  EXPECT_NEAR(static_cast<double>(follow) / kRows, 0.5, 0.06);
  // One sample in ten has a random length. In one of four cases, this is the
  // maximum, and the sample has no padding.
  EXPECT_NEAR(static_cast<double>(padded) / kRows, 0.1 * 3 / 4, 0.03);
}

TEST_F(SentencePairsTest, noSentenceGoesBeyondItsDocument) {
  std::string text;
  for (int i = 0; i < 60; ++i)
    text += "abcd\n"; // 5 bytes, so windows of 8 begin everywhere in them
  write(text);
  const program::ProgramT ofPairs = programOfPairs();
  TokenSampleOptions form = kPairs;
  form.documentEnd = '\n';
  TextData data(
      openTokens({path}, {.format = TokenFormat::Bytes, .mostBytes = 1000}),
      ofPairs, 0, form, LastBatch::Fill);
  std::vector<std::byte> in(size_t{200} * 8 * 13);
  data.load(program::ValueKind::Tokens, {}, in);
  const auto *tokens = reinterpret_cast<const int64_t *>(in.data());
  for (size_t i = 0; i < size_t{200} * 8; ++i) {
    EXPECT_NE(tokens[i], '\n');
    if (i % 8 > 0 && tokens[i] < 256 && tokens[i - 1] < 256) {
      EXPECT_EQ(tokens[i], tokens[i - 1] + 1);
    }
  }
}

// In Megatron's format, the index states the ends of documents. The tokens have
// no mark for the end.
TEST_F(SentencePairsTest, sentencesEndWithDocumentsOfAnIndex) {
  constexpr uint64_t kDocuments = 60;
  std::string text, index("MMIDIDX\0\0", 9);
  const auto add = [&](auto number) {
    index.append(reinterpret_cast<const char *>(&number), sizeof(number));
  };
  for (uint64_t i = 0; i < kDocuments; ++i)
    text += "abc";
  add(uint64_t{1}), add(uint8_t{1}), add(kDocuments), add(kDocuments + 1);
  for (uint64_t i = 0; i < kDocuments; ++i)
    add(int32_t{3});
  for (uint64_t i = 0; i < kDocuments; ++i)
    add(3 * i);
  for (uint64_t i = 0; i <= kDocuments; ++i)
    add(i);
  const std::string name = path + "-documents";
  std::ofstream(name + ".bin", std::ios::binary) << text;
  std::ofstream(name + ".idx", std::ios::binary) << index;
  TextData data(openTokens({name + ".bin"}, {}), programOfPairs(), 0, kPairs,
                LastBatch::Fill);
  std::vector<std::byte> in(size_t{200} * 8 * 13);
  data.load(program::ValueKind::Tokens, {}, in);
  const auto *tokens = reinterpret_cast<const int64_t *>(in.data());
  for (size_t i = 0; i < size_t{200} * 8; ++i)
    if (i % 8 > 0 && tokens[i] < 256 && tokens[i - 1] < 256) {
      EXPECT_EQ(tokens[i], tokens[i - 1] + 1);
    }
  std::filesystem::remove(name + ".bin");
  std::filesystem::remove(name + ".idx");
}

TEST_F(SentencePairsTest, refusesModelsOfOtherFields) {
  writeRamp(250);
  program::ProgramT ofPairs = programOfPairs();
  auto refusalOf = [&](const TokenSampleOptions &form) -> std::string {
    try {
      TextData(
          openTokens({path}, {.format = TokenFormat::Bytes, .mostBytes = 1000}),
          ofPairs, 0, form, LastBatch::Fill);
    } catch (const std::exception &error) {
      return error.what();
    }
    return "(accepted)";
  };
  auto expectRefusal = [&](const TokenSampleOptions &form, const char *part) {
    const std::string refusal = refusalOf(form);
    EXPECT_NE(refusal.find(part), std::string::npos) << refusal;
  };
  EXPECT_EQ(refusalOf(kPairs), "(accepted)");
  expectRefusal({.masking = kPairs.masking},
                "expected pairs of sentences (--pairs)");
  expectRefusal({.pairing = kPairs.pairing}, "expected --mask with --pairs");
  for (const Pairing &pairing :
       {Pairing{300, 302, 303}, Pairing{301, 300, 303}, Pairing{301, 302, 300}})
    expectRefusal({.masking = kPairs.masking, .pairing = pairing},
                  "got 300 in both");
  // One token may be the mark for the end of a text and for padding.
  EXPECT_EQ(
      refusalOf({.masking = kPairs.masking, .pairing = Pairing{301, 302, 302}}),
      "(accepted)");
  program::PackageT &package = *ofPairs.model;
  int64_t &vocabulary = package.kinds[0]->parameters[0]->shape[0];
  vocabulary = 303;
  expectRefusal(kPairs,
                "of 303 as marks (--mask, --pairs, --document-end), got 303");
  vocabulary = 304;
  TokenSampleOptions documents = kPairs;
  documents.documentEnd = 304;
  expectRefusal(documents, "of 304 as marks (--mask, --pairs, --document-end), "
                           "got 304");
  package.inputs[2] = "pixels";
  expectRefusal(kPairs, "got one with 'pixels' of 8 boolean a sample");
  package.inputs.pop_back();
  package.kinds[0]->graphs->inputs.pop_back();
  expectRefusal(kPairs, "expected a model with attention_mask");
  package.inputs[0] = "words";
  expectRefusal(kPairs, "got one with 'words'");
}

// A model that predicts only whether B follows A needs no masked tokens.
TEST_F(SentencePairsTest, makesPairsWithoutMasks) {
  writeRamp(250);
  program::ProgramT ofPairs = programOfPairs();
  program::PackageT &package = *ofPairs.model;
  package.labels = {program::kNextSentenceLabel};
  package.kinds[2]->graphs->labels.resize(1);
  TextData data(
      openTokens({path}, {.format = TokenFormat::Bytes, .mostBytes = 1000}),
      ofPairs, 0, {.pairing = kPairs.pairing}, LastBatch::Fill);
  EXPECT_FALSE(data.predictsTokensAlone());
  std::vector<int64_t> follows(100, -1);
  data.load(program::ValueKind::Labels, {}, bytesOf(follows));
  EXPECT_EQ(std::ranges::count(follows, 0) + std::ranges::count(follows, 1),
            100);
}

// The vocabulary of a package is the number of rows of the table in which it
// looks up tokens.
TEST_F(SentencePairsTest, refusesTokensBeyondAPackagesVocabulary) {
  writeRamp(250);
  program::ProgramT ofPairs = programOfPairs();
  ofPairs.model->kinds[0]->parameters[0]->shape[0] = 200;
  TokenSampleOptions form = kPairs;
  form.masking->token = 0;
  form.pairing = Pairing{1, 2, 3};
  TextData data(
      openTokens({path}, {.format = TokenFormat::Bytes, .mostBytes = 1000}),
      ofPairs, 0, form, LastBatch::Fill);
  std::vector<std::byte> in(size_t{100} * 8 * 13);
  try {
    data.load(program::ValueKind::Tokens, {}, in);
    FAIL() << "expected an exception";
  } catch (const std::runtime_error &error) {
    EXPECT_NE(std::string(error.what())
                  .find("expected tokens of the model's vocabulary of 200"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(SentencePairsTest, checksAllTokensInAdvance) {
  writeRamp(250);
  program::ProgramT ofPairs = programOfPairs();
  int64_t &vocabulary = ofPairs.model->kinds[0]->parameters[0]->shape[0];
  TokenSampleOptions form = kPairs;
  form.masking->token = 0;
  form.pairing = Pairing{1, 2, 3};
  for (int64_t bound : {200, 249, 250}) {
    vocabulary = bound;
    const TextData data(openTokens({path}, {.format = TokenFormat::Bytes}),
                        ofPairs, 0.1, form, LastBatch::Fill);
    const std::string fault = data.check(2);
    const std::string at = std::to_string(bound);
    EXPECT_EQ(fault, bound == 250
                         ? ""
                         : "expected tokens of the model's vocabulary of " +
                               at + ", got " + at + " as byte " + at + " of '" +
                               path + "'");
  }
}

} // namespace
} // namespace chimera::runtime
