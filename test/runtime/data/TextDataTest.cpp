//===- TextDataTest.cpp - Byte-level tokens of a text file ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/data/TextDataFixture.h"

#include "runtime/program/Layers.h"
#include "runtime/program/Package.h"
#include "test/runtime/program/SamplePackages.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sys/stat.h>
#include <thread>

namespace chimera::runtime {
namespace {

using namespace test;

// The text of a sample does not depend on the number of samples in its
// micro-batch.
TEST_F(TextDataTest, samplesHaveTheirOwnWindows) {
  writeRamp(200);
  TextData data(path, program, 0.25);
  std::vector<int64_t> ofTwo = load(data, program::ValueKind::Tokens, {3, 1});
  std::vector<int64_t> ofFour =
      load(data, program::ValueKind::Tokens, {3, 0}, 4);
  EXPECT_EQ(std::vector(ofFour.begin() + 16, ofFour.end()), ofTwo);
}

TEST_F(TextDataTest, holdsOutTheEnd) {
  writeRamp(200);
  TextData data(path, program, 0.25);
  EXPECT_EQ(data.trainingTokens(), 150);
  EXPECT_EQ(data.heldOutTokens(), 50);
  EXPECT_EQ(data.heldOutSample(0, 3).tokens[0], 150);
  EXPECT_EQ(data.heldOutSample(2, 3).labels[7], 199);
  EXPECT_EQ(data.heldOutSample(2, 3).tokens.size(), 8u);
}

TEST_F(TextDataTest, windowsAreTrainingTextAndLabelsTheNextBytes) {
  writeRamp(200);
  TextData data(path, program, 0.25);
  // 150 training tokens have room for 17 windows of 8 tokens, wherever the
  // first one begins. An epoch is 2 steps of 8 windows.
  EXPECT_EQ(data.sampleOrder().samples(), 17u);
  EXPECT_EQ(data.sampleOrder().stepsOf(1), 2u);
  std::set<int64_t> ofEpoch, starts, ofFirst;
  for (uint64_t step = 0; step < 400; ++step) {
    auto tokens = load(data, program::ValueKind::Tokens, {step, 0}, 8);
    auto labels = load(data, program::ValueKind::Labels, {step, 0}, 8);
    for (size_t i = 0; i < 64; ++i) {
      EXPECT_EQ(labels[i], tokens[i] + 1);
      EXPECT_LT(labels[i], 150);
      if (i % 8 != 0) {
        EXPECT_EQ(tokens[i], tokens[i - 1] + 1);
      } else {
        ofEpoch.insert(tokens[i]);
      }
    }
    if (step % 2 == 0)
      continue;
    // Windows of one epoch do not overlap.
    EXPECT_EQ(ofEpoch.size(), 16u);
    for (int64_t start : ofEpoch)
      EXPECT_EQ(start % 8, *ofEpoch.begin() % 8);
    ofFirst.insert(*ofEpoch.begin() % 8);
    starts.merge(ofEpoch);
    ofEpoch.clear();
  }
  // A window may start at each token but the last 14.
  EXPECT_EQ(ofFirst.size(), 8u);
  EXPECT_EQ(*starts.begin(), 0);
  EXPECT_EQ(*starts.rbegin(), 135);
  EXPECT_EQ(starts.size(), 136u);
}

TEST_F(TextDataTest, windowsAreAFunctionOfSeedStepAndMicroBatch) {
  writeRamp(250);
  TextData data(path, program), same(path, program);
  program.seed = 43;
  TextData other(path, program);
  const auto kind = program::ValueKind::Tokens;
  EXPECT_EQ(load(data, kind, {1, 2}), load(same, kind, {1, 2}));
  EXPECT_NE(load(data, kind, {1, 2}), load(data, kind, {2, 1}));
  EXPECT_NE(load(data, kind, {1, 2}), load(data, kind, {1, 3}));
  EXPECT_NE(load(data, kind, {1, 2}), load(other, kind, {1, 2}));
}

TEST_F(TextDataTest, bytesAreNotSigned) {
  write(std::string(100, '\xff'));
  TextData data(path, program);
  for (int64_t token : load(data, program::ValueKind::Tokens, {0, 0}))
    EXPECT_EQ(token, 255);
}

TEST_F(TextDataTest, unigramLossIsTheCrossEntropy) {
  // 30 of the 90 training bytes are 'b'. All held-out bytes are 'b'.
  std::string text;
  for (int i = 0; i < 30; ++i)
    text += "aab";
  write(text + std::string(10, 'b'));
  TextData data(path, program, 0.1);
  EXPECT_NEAR(data.unigramLoss(data, 2), -std::log(31.0 / (90 + 256)), 1e-12);
}

// All tokens may be held out, as with --validation.
TEST_F(TextDataTest, mayHoldOutAll) {
  std::string text;
  for (int i = 0; i < 30; ++i)
    text += "aab";
  write(text + std::string(10, 'b'));
  TextData whole(path, program, 0.1);
  write(text);
  TextData training(path, program, 0);
  write(std::string(10, 'b'));
  TextData validation(path, program, 1);
  EXPECT_EQ(validation.heldOutTokens(), 10);
  EXPECT_EQ(validation.heldOutSample(1, 2).tokens,
            whole.heldOutSample(1, 2).tokens);
  EXPECT_EQ(training.unigramLoss(validation, 2), whole.unigramLoss(whole, 2));
  EXPECT_THROW(validation.sampleOrder(), std::bad_optional_access);
  EXPECT_THROW(load(validation, program::ValueKind::Tokens, {0, 0}),
               std::bad_optional_access);
}

class HeldOutTest : public TextDataTest,
                    public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Tied, HeldOutTest, testing::Bool());

TEST_P(HeldOutTest, isEvaluatedWithoutDropout) {
  writeRamp(600);
  Sizes sizes{
      .context = 8, .vocabulary = 256, .dropout = 0.5, .tied = GetParam()};
  program = smallProgram(sizes, {4});
  program.micro_batches = 2;
  program.data_parallel = 1;
  TextData data(path, program, 0.5);
  EXPECT_EQ(data.heldOutCount(), 37u); // 299 = 37 · 8 + 3 tokens have labels
  auto heldOut = data.heldOut(8);
  Line<double> line(program), plain(program);
  auto evaluate = [&](Line<double> &of, MicroBatch microBatch) {
    heldOut->load(program::ValueKind::Tokens, microBatch, bytesOf(of.tokens));
    heldOut->load(program::ValueKind::Labels, microBatch, bytesOf(of.labels));
    double loss = 0;
    of.parts[0].stage->forward(microBatch, bytesOf(of.tokens),
                               bytesOf(of.labels), bytesOf(of.parts[0].weights),
                               std::as_writable_bytes(std::span(&loss, 1)),
                               ForwardMode::Evaluation);
    return loss;
  };
  // Evaluate micro-batch 1 of step 1, which has the last two held-out samples.
  const double loss = evaluate(line, {1, 1});
  EXPECT_EQ(line.tokens[8], data.heldOutSample(7, 8).tokens[0]);
  EXPECT_EQ(line.labels[0], data.heldOutSample(6, 8).labels[0]);
  EXPECT_NEAR(loss, std::log(256), 0.1);
  // Evaluation computes the same as a training forward without dropout.
  sizes.dropout = 0;
  setGpt2(program, sizes.gpt2());
  Line<double> without(program);
  without.tokens = line.tokens;
  without.labels = line.labels;
  EXPECT_NEAR(loss, without.forward({0, 0}), 1e-12);
}

TEST_F(TextDataTest, refusesFewerWindowsThanAMiniBatch) {
  writeRamp(71);
  EXPECT_THROW(TextData(path, program, 0), std::runtime_error);
  writeRamp(72);
  EXPECT_NO_THROW(TextData(path, program, 0));
}

// With LastBatch::Fill, a mini-batch may repeat windows.
TEST_F(TextDataTest, fillsAMiniBatchFromTheNextEpoch) {
  writeRamp(24); // two windows
  TextData data(path, program, 0, kMaxTextBytes, LastBatch::Fill);
  const auto tokens = load(data, program::ValueKind::Tokens, {0, 0}, 8);
  for (size_t row = 0; row < 8; row += 2)
    EXPECT_EQ(std::abs(tokens[8 * row] - tokens[8 * row + 8]), 8);
}

TEST_F(TextDataTest, refusesAMissingFile) {
  EXPECT_EQ(refusal(), "cannot read the text file '" + path +
                           "': No such file or directory");
}

TEST_F(TextDataTest, refusesAFolder) {
  std::filesystem::create_directory(path);
  EXPECT_EQ(refusal(),
            "cannot read the text file '" + path + "': Is a directory");
}

TEST_F(TextDataTest, refusesWhatHasNoEnd) {
  std::filesystem::create_symlink("/dev/zero", path);
  EXPECT_EQ(refusal(), "cannot read the text file '" + path +
                           "': expected a file or a pipe, got a device");
}

TEST_F(TextDataTest, refusesMoreThanTheMost) {
  const std::string reason = "cannot read the text file '" + path +
                             "': expected at most 100 bytes, as every rank has "
                             "the whole text in memory, got ";
  writeRamp(100);
  EXPECT_EQ(refusal(0, 100), "(accepted)");
  writeRamp(101);
  EXPECT_EQ(refusal(0, 100), reason + "101");

  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  for (size_t bytes : {100, 101}) {
    std::thread writer([&] { writeRamp(bytes); });
    EXPECT_EQ(refusal(0, 100), bytes == 100 ? "(accepted)" : reason + "more");
    writer.join();
  }
}

TEST_F(TextDataTest, refusesTooShortTraining) {
  writeRamp(9);
  EXPECT_EQ(refusal(0.5), "expected at least 9 bytes of training text (the "
                          "context of 8 and one more), got 5 of the 9 in '" +
                              path + "'; give a longer text");
  EXPECT_EQ(refusal(0), "(accepted)");
}

// A text whose held-out part is too short for a sample is accepted. Only an
// evaluation fails.
TEST_F(TextDataTest, refusesToEvaluateOnTooShortHeldOut) {
  for (size_t bytes : {10, 80}) {
    writeRamp(bytes);
    TextData data(path, program, 0.1, kMaxTextBytes, LastBatch::Fill);
    try {
      data.heldOut(1);
      ADD_FAILURE() << "accepted " << bytes << " bytes";
    } catch (const std::runtime_error &error) {
      EXPECT_EQ(std::string(error.what()),
                "expected at least 9 bytes of held-out text (the context of 8 "
                "and one more), got " +
                    std::to_string(bytes / 10) + " of the " +
                    std::to_string(bytes) + " in '" + path +
                    "'; give a longer text, another --hold-out, or "
                    "--evaluate-samples 0");
    }
  }
  writeRamp(90);
  EXPECT_NO_THROW(TextData(path, program, 0.1).heldOut(1));
}

TEST_F(TextDataTest, refusesAWrongHeldOutFraction) {
  writeRamp(100);
  EXPECT_NE(refusal(1.1).find("expected a held-out part in [0, 1]"),
            std::string::npos);
  EXPECT_NE(refusal(-0.1).find("expected a held-out part in [0, 1]"),
            std::string::npos);
}

TEST_F(TextDataTest, refusesOtherThanTokensAndLabels) {
  writeRamp(100);
  TextData data(path, program);
  std::vector<int64_t> values(16);
  EXPECT_THROW(data.load(program::ValueKind::Loss, {0, 0}, bytesOf(values)),
               std::invalid_argument);
  values.pop_back();
  EXPECT_THROW(data.load(program::ValueKind::Tokens, {0, 0}, bytesOf(values)),
               std::invalid_argument);
}

} // namespace
} // namespace chimera::runtime
