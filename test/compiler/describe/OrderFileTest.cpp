//===- OrderFileTest.cpp - Orders of workers as a file --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/describe/OrderFile.h"

#include <gtest/gtest.h>
#include <random>

using namespace chimera;

namespace {

/// The error about the order file "o.txt", with the line and the caret.
std::string errorOf(std::string_view file) {
  std::string error;
  EXPECT_FALSE(describeOrderFile("o.txt", file, error)) << file;
  return error;
}

/// The module of the order file "o.txt", or the first line of the error.
std::string textOf(std::string_view file) {
  std::string error;
  std::optional<std::string> text = describeOrderFile("o.txt", file, error);
  return text ? *text : error.substr(0, error.find('\n'));
}

TEST(OrderFile, PlacementFollowsFromTheWords) {
  EXPECT_EQ(textOf("# on a V\n"
                   "P0: 0F0 3F0 3B0 0B0\n"
                   "\n"
                   "  P1:  1F0 2F0 2B0 1B0\n"),
            "chimera.pipeline @order stages(4) micro_batches(1) workers(2) {\n"
            "  chimera.direction 0 down on [0, 1, 1, 0] micro_batches [0]\n"
            "  chimera.order 0 \"0F0 3F0 3B0 0B0\" loc(\"o.txt\":2:4)\n"
            "  chimera.order 1 \"1F0 2F0 2B0 1B0\" loc(\"o.txt\":4:7)\n"
            "}\n");
}

TEST(OrderFile, MicroBatchesInTwoDirectionsAreTwoPipelines) {
  EXPECT_EQ(textOf("0F0 1F1 1B1 0B0\n"
                   "0F1 1F0 1B0 0B1\n"),
            "chimera.pipeline @order stages(2) micro_batches(2) {\n"
            "  chimera.direction 0 down on [0, 1] micro_batches [0]\n"
            "  chimera.direction 1 up on [1, 0] micro_batches [1]\n"
            "  chimera.order 0 \"0F0 1F1 1B1 0B0\" loc(\"o.txt\":1:0)\n"
            "  chimera.order 1 \"0F1 1F0 1B0 0B1\" loc(\"o.txt\":2:0)\n"
            "}\n");
}

TEST(OrderFile, WithoutStagesEachWorkerHasOne) {
  EXPECT_EQ(textOf("F0 F1 B0 B1\nF0 B0 . F1 B1"),
            "chimera.pipeline @order stages(2) micro_batches(2) {\n"
            "  chimera.direction 0 down on [0, 1] micro_batches [0, 1]\n"
            "  chimera.order 0 \"F0 F1 B0 B1\" loc(\"o.txt\":1:0)\n"
            "  chimera.order 1 \"F0 B0 . F1 B1\" loc(\"o.txt\":2:0)\n"
            "}\n");
}

TEST(OrderFile, CommentsAndEndsOfLinesAreLeftOut) {
  EXPECT_EQ(textOf("P0: F0 B0 # first\r\n"), textOf("P0: F0 B0"));
  EXPECT_NE(textOf("p0 :F0 B0").find("chimera.order 0 \"F0 B0\""),
            std::string::npos);
}

TEST(OrderFile, RangesPartsAndRecomputes) {
  EXPECT_EQ(textOf("F0-1 R0 B0 B1 F2-3 B2 B3"),
            "chimera.pipeline @order stages(1) micro_batches(4) recompute([0]) "
            "{\n"
            "  chimera.direction 0 down on [0] micro_batches [0, 1, 2, 3] "
            "forwards [2, 2]\n"
            "  chimera.order 0 \"F0-1 R0 B0 B1 F2-3 B2 B3\" "
            "loc(\"o.txt\":1:0)\n"
            "}\n");
  EXPECT_NE(textOf("F0 B0.0 B0.1").find("backward_parts 2"), std::string::npos);
}

TEST(OrderFile, FaultsAreAtTheirWords) {
  EXPECT_EQ(textOf(""),
            "o.txt:1:1: error: expected a line for each worker, got none");
  EXPECT_EQ(textOf("# nothing\n"),
            "o.txt:1:1: error: expected a line for each worker, got none");
  EXPECT_EQ(textOf("F0 B0\nP2: F0 B0"),
            "o.txt:2:1: error: expected the line of worker 1, got that of 2");
  EXPECT_EQ(textOf("P0: F0 X0 B0"),
            "o.txt:1:8: error: expected a word such as F0 (forward of "
            "micro-batch 0), B0, I0, W0, R0, F0-1, B0.1, F1+B0 (a pair) or . "
            "(an idle slot), "
            "got X0: a row of a grid is not an order");
  EXPECT_EQ(textOf("X0\n1F0 1B0"),
            "o.txt:1:1: error: expected a word such as 2F0 (forward of "
            "micro-batch 0 on stage 2), 2B0, 2I0, 2W0, 2R0, 2F0-1, 2B0.1, "
            "2F1+2B0 (a pair) or . "
            "(an idle slot), got X0: a row of a grid is not an order");
  EXPECT_EQ(textOf("0F0 0B0\n1F0 B0"),
            "o.txt:2:5: error: expected a stage in each word, such as 1B0, "
            "because other words have one");
  EXPECT_EQ(
      textOf("F0 0B0"),
      "o.txt:1:4: error: expected no stage, because earlier words have none");
  EXPECT_EQ(textOf("0F0 0B0\n1F0 0B0"),
            "o.txt:2:5: error: expected stage 0 of micro-batch 0 on worker 0 "
            "only, because its line has it");
  EXPECT_EQ(
      textOf("0F0 0B0 0F1 0B1\n1F0 1B0"),
      "o.txt:2:1: error: expected a forward and a backward of micro-batch 1 on "
      "stage 1, got neither in any line");
  EXPECT_EQ(
      textOf("P0: F0 F1 B0 B1\nP1: F0 B0"),
      "o.txt:2:5: error: expected a forward and a backward of micro-batch 1 on "
      "stage 1, got neither in any line");
  EXPECT_EQ(textOf("F0 B0.0 B0.2"),
            "o.txt:1:1: error: expected all parts of the backwards of "
            "micro-batch 0 up to 2, got only [0, 2]");
  EXPECT_EQ(textOf("F0-1 F1 B0 B1\nF0-1 B0 B1"),
            "o.txt:1:6: error: expected each micro-batch in the same forward "
            "on all stages, got F1 and F0-1");
  EXPECT_EQ(textOf("F0-1 B0 B1\nF0 F1 B0 B1"),
            "o.txt:2:4: error: expected each micro-batch in the same forward "
            "on all stages, got F1 and F0-1");
  EXPECT_EQ(textOf("0F0-1 0B0 0B1 1B0\n1B1"),
            "o.txt:1:1: error: expected micro-batches with the same workers "
            "on all stages in a forward, got 0F0-1");
  EXPECT_EQ(textOf(". ."), "o.txt:1:1: error: expected an action, got none");
  EXPECT_TRUE(textOf("F0 | B0").starts_with(
      "o.txt:1:4: error: expected a schedule with a flush in an order file"));
  for (const char *word : {"F", "F-1", "F0-", "F1-0", "B0.", "B0.256", "F65535",
                           "99999999999F0", "F0x", "f0", "-1F0"})
    EXPECT_TRUE(textOf(word).starts_with("o.txt:1:1: error: expected a word"))
        << word << ": " << textOf(word);
}

// Readers of a pipeline rely on it: its forwards have each of its micro-batches
// once.
TEST(OrderFile, ForwardsCoverAnyPipeline) {
  std::mt19937 random(5);
  auto below = [&](int n) { return static_cast<int>(random() % n); };
  int read = 0, withForwards = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string file;
    for (int worker = 0, workers = 1 + below(2); worker < workers; ++worker) {
      for (int words = 1 + below(4); words > 0; --words) {
        const int first = below(4), stage = below(2);
        file += std::to_string(stage) + "FB"[below(2)] + std::to_string(first);
        if (below(3) == 0)
          file += "-" + std::to_string(first + 1 + below(2));
        file += " ";
      }
      file += "\n";
    }
    std::string error;
    std::optional<OrderFile> order = readOrderFile("o.txt", file, error);
    EXPECT_EQ(order.has_value(), error.empty()) << file;
    if (!order)
      continue;
    ++read;
    for (const schedule::Pipeline &pipeline : order->pipelines) {
      const std::vector<int32_t> &all = pipeline.microBatches;
      size_t at = 0;
      for (int32_t count : pipeline.forwards) {
        ASSERT_GT(count, 0) << file;
        ASSERT_LE(at + count, all.size()) << file;
        EXPECT_EQ(all[at + count - 1], all[at] + count - 1) << file;
        at += count;
      }
      if (!pipeline.forwards.empty()) {
        EXPECT_EQ(at, all.size()) << file;
      }
      withForwards += !pipeline.forwards.empty();
    }
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(withForwards, 30);
}

TEST(OrderFile, WrongPunctuationHasAHint) {
  EXPECT_TRUE(
      textOf("P0: F0, B0")
          .ends_with("got F0,: blanks separate words, write no commas"));
  EXPECT_TRUE(textOf("F0,B0").ends_with(
      "got F0,B0: blanks separate words, write no commas"));
  EXPECT_EQ(textOf("P0: F0 B0\n P1 = F0 B0"),
            "o.txt:2:5: error: expected a colon after the worker, such as P0:, "
            "got =");
}

/// Micro-batch 2 runs in the same direction as micro-batch 1, as far as the
/// file says. So its missing stage 0 belongs on the line of worker 1.
TEST(OrderFile, MissingStageIsOnTheLineOfItsDirection) {
  EXPECT_EQ(
      textOf("P0: 0F0 1F1 1F2 1B1 1B2 0B0\n"
             "P1: 0F1 1F0 1B0 0B1\n"),
      "o.txt:2:5: error: expected a forward and a backward of micro-batch 2 on "
      "stage 0, got neither in any line");
  EXPECT_EQ(
      textOf("P0: 1F0 1B0\n"),
      "o.txt:1:5: error: expected a forward and a backward of micro-batch 0 on "
      "stage 0, got neither in any line");
}

/// A micro-batch that only one word has is probably a wrong number. The error
/// is at this word, and not at the first line, which lacks the micro-batch.
TEST(OrderFile, WrongMicroBatchIsAtItsWord) {
  EXPECT_EQ(textOf("P0: F0 F1 B0 B1\nP1: F0 F1 B0 B2"),
            "o.txt:2:14: error: expected a forward and a backward of "
            "micro-batch 2 on each stage, got only B2: is its number right?");
  EXPECT_EQ(textOf("P0: F0 F1 B0 B1\nP1: F0 F9 B0 B1"),
            "o.txt:2:8: error: expected a forward and a backward of "
            "micro-batch 9 on each stage, got only F9: is its number right?");
}

TEST(OrderFile, SmallLettersAreOfAGrid) {
  auto ending = [](std::string_view file) {
    std::string error = textOf(file);
    return error.substr(error.find("got "));
  };
  EXPECT_EQ(ending("P0: F0 b1\nP1: F0 B0"),
            "got b1: only a grid has small letters, for a second pipeline; "
            "write B1, or 1B1 (stage 1) if a worker has several stages");
  EXPECT_EQ(ending("0F0 0b0"),
            "got 0b0: only a grid has small letters, for a second pipeline; "
            "write 0B0");
  EXPECT_EQ(ending("0F0 b0"),
            "got b0: only a grid has small letters, for a second pipeline; "
            "write the stage and a capital letter, such as 1B0");
}

/// After the error come the line and a caret, as in errors about modules.
TEST(OrderFile, FaultsShowTheirLine) {
  std::string error = errorOf("# two\nP0:\tF0 X0 B0 # end\r\nP1: F0 B0\n");
  EXPECT_EQ(error.substr(error.find('\n')), "\n"
                                            "P0: F0 X0 B0 # end\n"
                                            "       ^");
  EXPECT_EQ(errorOf(""),
            "o.txt:1:1: error: expected a line for each worker, got none");
  error = errorOf("P0: F0 \x1b B0\n");
  EXPECT_NE(error.find("\nP0: F0 \\x1b B0\n       ^"), std::string::npos)
      << error;
}

TEST(OrderFile, IsToldFromAModule) {
  for (const char *text : {"F0 B0", "P0: 0F0", "# words\n\n 0F0 B0",
                           "// words\n.3 F0", "F0, B0", "P0 = F0"})
    EXPECT_TRUE(isOrderFile(text)) << text;
  for (const char *text :
       {"", "chimera.pipeline @p stages(1)", "module {", "// only this", "Foo",
        "#map = affine_map<()>", "{-#"})
    EXPECT_FALSE(isOrderFile(text)) << text;
}

} // namespace
