//===- DescriptionTest.cpp - The file training.json -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/checkpoint/Description.h"

#include "test/runtime/model/SmallModel.h"
#include "test/runtime/model/checkpoint/TestFolder.h"
#include "test/runtime/program/SamplePackages.h"

using namespace chimera::runtime;

namespace {
using DescriptionTest = chimera::runtime::test::TestFolder;

CheckpointDescription example() {
  return {.step = 50,
          .updates = 400,
          .samplesPerStep = 32,
          .seed = UINT64_MAX,
          .optimizer = "adamw",
          .weightType = "float64",
          .data = "0123456789abcdef",
          .program = "train (\"chimera\")",
          .model = R"({"layers":3})",
          .graphs = {"01", "23", "45", "67"},
          .numbers = R"({"learning_rate":0.001,"lr_steps":30})",
          .checksums = {
              {"model-00001-of-00001.safetensors", {{"a", "00"}, {"b", "01"}}},
              {"optimizer-00001-of-00001.safetensors", {}}}};
}

TEST_F(DescriptionTest, isReadAsItWasWritten) {
  write("training.json", format(example()));
  EXPECT_EQ(format(readDescription(folder)), format(example()));
  EXPECT_EQ(readDescription(folder).seed, UINT64_MAX);
  EXPECT_EQ(readDescription(folder).updates, 400u);
}

TEST_F(DescriptionTest, hasChecksumsOfXxh3) {
  // The value of xxhsum -H3 for an empty input, and a change of one bit.
  EXPECT_EQ(checksumOf({}), "2d06800538d394c2");
  std::vector<std::byte> bytes(1000);
  const std::string zeros = checksumOf(bytes);
  bytes[999] = std::byte(1);
  EXPECT_NE(checksumOf(bytes), zeros);
}

TEST_F(DescriptionTest, isRefusedIfItWasEdited) {
  const std::string good = format(example());
  std::string edited = good;
  edited.replace(edited.find(": 50"), 4, ": 51");
  const std::string sumOfGood = good.substr(good.find("sum\": \"") + 7, 16);
  std::string broken = good;
  broken.replace(broken.find(sumOfGood), 4, "xxxx");
  for (const std::string &text :
       {edited, broken, good + "\n", good.substr(0, good.size() - 1)}) {
    write("training.json", text);
    const std::string error = errorOf([&] { readDescription(folder); });
    EXPECT_NE(
        error.find("training.json: expected a file with the checksum " +
                   (text == broken ? "xxxx" + sumOfGood.substr(4) : sumOfGood) +
                   ", got one with "),
        std::string::npos)
        << error;
    EXPECT_NE(error.find("it is damaged, or was edited"), std::string::npos);
  }
}

TEST_F(DescriptionTest, hasDigestsOfTheOperators) {
  chimera::program::ProgramT program = test::smallProgram({});
  program.model = chimera::program::samplePackage();
  auto digests = [&] { return describeCheckpoint(program, 1, 2, 3).graphs; };
  const std::vector<std::string> before = digests();
  ASSERT_EQ(before.size(), program.model->layers.size());
  EXPECT_EQ(before[0].size(), 16u);
  auto &calls = program.model->kinds[program.model->layers[0]->kind]
                    ->graphs->forward->calls;
  ASSERT_FALSE(calls.empty());
  // Integers do not count.
  auto &arguments = calls[0]->arguments;
  arguments.push_back(std::make_unique<chimera::program::ArgumentT>());
  const std::vector<std::string> more = digests();
  EXPECT_NE(more[0], before[0]);
  EXPECT_EQ(more.back(), before.back());
  arguments.back()->integers.push_back(7);
  EXPECT_EQ(digests(), more);
  arguments.back()->numbers.push_back(0.5);
  EXPECT_NE(digests(), more);
  arguments.pop_back();
  EXPECT_EQ(digests(), before);
  calls[0]->operator_ += "x";
  EXPECT_NE(digests(), before);
}

TEST_F(DescriptionTest, saysWhatIsWrong) {
  const std::string good = format(example());
  auto replaced = [&](const std::string &from, const std::string &to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  const std::string wrongChecksums =
      "expected \"checksums\" with an object of files, each with an object of "
      "tensors and checksums";
  const std::pair<std::string, std::string> cases[] = {
      {"", "expected a JSON object"},
      {"[]", "expected a JSON object"},
      {good.substr(0, good.size() / 2), "expected a JSON object"},
      {std::string(100, '['), "expected at most three levels of objects"},
      {replaced("checkpoint 1", "checkpoint 2"),
       "expected the format 'chimera checkpoint 1', got 'chimera checkpoint "
       "2'"},
      {replaced("\"format\"", "\"other\""),
       "expected \"format\" with the name of the format"},
      {replaced(": 50", ": -50"), "expected \"step\" with a whole number"},
      {replaced(": 50", ": \"50\""), "expected \"step\" with a whole number"},
      {replaced(": 50", ": 1.5"), "expected \"step\" with a whole number"},
      {replaced("\"checksum\"", "\"sum\""),
       "expected \"checksum\" with a text"},
      {replaced("\"adamw\"", "1"), "expected \"optimizer\" with a text"},
      {replaced("\"00\"", "0"), wrongChecksums},
      {replaced("\"23\"", "23"), "expected \"graphs\" with a list of texts"},
      {replaced("\"model\"", "\"models\""),
       "expected \"model\" with an object"},
      {replaced("\"checksums\"", "\"sums\""), wrongChecksums}};
  for (const auto &[text, expected] : cases) {
    write("training.json", text);
    EXPECT_EQ(errorOf([&] { readDescription(folder); }),
              "cannot resume from '" + folder.string() +
                  "': training.json: " + expected + kTakeAnother)
        << text;
  }
  std::filesystem::remove(folder / "training.json");
  EXPECT_NE(errorOf([&] {
              readDescription(folder);
            }).find("training.json: cannot read '"),
            std::string::npos);
}

TEST_F(DescriptionTest, saysWhatMayNotChange) {
  const chimera::program::ProgramT program = test::smallProgram({});
  const CheckpointDescription same = describeCheckpoint(program, 50, 100, 0);
  CheckpointDescription saved = same;
  saved.seed += 1;
  saved.data = "f123456789abcdef";
  saved.program = "other";
  saved.graphs.clear();
  saved.numbers = "{}";
  EXPECT_EQ(reasonNotToResume(saved, program), "");
  auto expect = [&](auto change, const std::string &begin) {
    saved = same;
    change();
    EXPECT_EQ(reasonNotToResume(saved, program).find(begin), 0u)
        << reasonNotToResume(saved, program);
  };
  expect([&] { saved.model = R"({"layers":99})"; },
         "the checkpoint is of another model: expected " +
             std::to_string(program.model->layers.size()) +
             " layers (with embedding and head), got 99: give the program of "
             "that model, ");
  expect([&] { saved.optimizer = "x"; },
         "expected a checkpoint of the optimizer " + same.optimizer +
             ", got one of x: ");
  expect([&] { saved.weightType = "x"; },
         "expected weights of type " + same.weightType + ", got x: ");
  expect([&] { saved.samplesPerStep += 1; },
         "expected " + std::to_string(same.samplesPerStep) +
             " samples per step, as in the program, got " +
             std::to_string(same.samplesPerStep + 1) + ": ");
}

TEST_F(DescriptionTest, saysWhyResultsWillDiffer) {
  const CheckpointDescription saved = example();
  EXPECT_EQ(noteOfChanges(saved, saved), "");
  CheckpointDescription now = saved;
  auto note = [&] {
    const std::string all = noteOfChanges(saved, now),
                      end = ": results will differ from those of a run without "
                            "interruption";
    now = saved;
    EXPECT_TRUE(all.ends_with(end)) << all;
    return all.substr(0, all.size() - std::min(all.size(), end.size()));
  };
  now.seed = 1;
  now.data = "f123456789abcdef";
  EXPECT_EQ(note(), "the seed was 18446744073709551615 and is 1, and the data, "
                    "their order or the held-out part (--hold-out, "
                    "--validation) are other ones");
  now.data = ""; // unknown
  now.program = "other";
  now.checksums.clear();
  now.step = 7;
  EXPECT_EQ(noteOfChanges(saved, now), "");
  now = saved;
  now.numbers = R"({"learning_rate":0.5,"lr_steps":9})";
  EXPECT_EQ(note(), "learning_rate was 0.001 and is 0.5, and lr_steps was 30 "
                    "and is 9 (--lr-steps 30 keeps it)");
  now.numbers = R"({"learning_rate":0.001})"; // a constant learning rate
  EXPECT_EQ(note(), "lr_steps was 30 and is not set");
  const std::string others =
      " with other operators or numbers, such as another activation, dropout "
      "or number of heads";
  now.graphs[2] = "x";
  EXPECT_EQ(note(), "layer 2 computes" + others);
  now.graphs[1] = now.graphs[2] = "x";
  EXPECT_EQ(note(), "layers 1 and 2 compute" + others);
  now.graphs[0] = "x";
  now.graphs.resize(2);
  EXPECT_EQ(note(), "layer 0 and 2 others compute" + others);
}
} // namespace
