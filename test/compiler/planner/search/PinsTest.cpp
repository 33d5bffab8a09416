//===- PinsTest.cpp - The parts of a plan that the user fixes -------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/search/Pins.h"
#include "test/compiler/planner/search/Questions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace chimera::plan {
namespace {

/// The scheme as text with all options: "chimera {pipelines = 4, concatenation
/// = best}".
std::string textOf(const SchemeWithOptions &pinned) {
  std::string text = pinned.scheme->name;
  for (size_t i = 0; i < pinned.options.table().size(); ++i)
    text += " " + pinned.options.print(i);
  return text;
}

std::vector<std::string> read(const std::string &text) {
  std::vector<SchemeWithOptions> schemes;
  EXPECT_EQ(readSchemes(text, schemes), "") << text;
  std::vector<std::string> texts;
  for (const SchemeWithOptions &pinned : schemes)
    texts.push_back(textOf(pinned));
  return texts;
}

std::string errorOfSchemes(const std::string &text) {
  std::vector<SchemeWithOptions> schemes;
  return readSchemes(text, schemes);
}

using Texts = std::vector<std::string>;

TEST(ReadSchemes, TakesNamesWithAndWithoutOptions) {
  EXPECT_EQ(read("1f1b"), Texts{"1f1b"});
  EXPECT_EQ(read("gpipe,chimera"), (Texts{"gpipe", "chimera best best"}));
  EXPECT_EQ(read("chimera {pipelines = 4, concatenation = halving}, 1f1b"),
            (Texts{"chimera 4 halving", "1f1b"}));
  EXPECT_EQ(read("chimera{concatenation=eager},chimera {pipelines = best}"),
            (Texts{"chimera best eager", "chimera best best"}));
}

TEST(ReadSchemes, TakesWhatPipelinesDescribe) {
  EXPECT_EQ(
      read("\"chimera\", {concatenation = \"halving\", pipelines = 2 : i64}"),
      Texts{"chimera 2 halving"});
}

TEST(ReadSchemes, SaysWhatItExpects) {
  EXPECT_EQ(errorOfSchemes(""), "expected a schedule, such as 1f1b or chimera "
                                "{pipelines = 4}, got nothing more");
  EXPECT_EQ(errorOfSchemes("1f1b,"), errorOfSchemes(""));
  EXPECT_EQ(errorOfSchemes("1f1b gpipe"),
            "expected a comma between schedules, got \"gpipe\"");
  EXPECT_EQ(errorOfSchemes("1f1b, dapple"),
            "expected one of the schedules " + schedule::schemeNames() +
                ", got \"dapple\": did you mean 1f1b?");
  EXPECT_NE(
      errorOfSchemes("zb-h1").find("got \"zb-h1\", which is not supported yet"),
      std::string::npos);
  EXPECT_EQ(errorOfSchemes("chimera {width = 3}"),
            "schedule chimera: expected one of the options pipelines, "
            "concatenation, got \"width\"");
  EXPECT_EQ(errorOfSchemes("1f1b {width = 3}"),
            "schedule 1f1b: expected no options, got \"width\"");
  EXPECT_EQ(errorOfSchemes("chimera {concatenation = late}"),
            "schedule chimera: expected concatenation to be direct, eager, "
            "doubling, fine-tuned-doubling or halving, or best, got \"late\"");
  EXPECT_EQ(errorOfSchemes("chimera {pipelines = 2, pipelines = 4}"),
            "schedule chimera: expected pipelines once");
  EXPECT_EQ(errorOfSchemes("chimera {pipelines}"),
            "schedule chimera: expected {OPTION = VALUE, …}, got \"}\"");
  EXPECT_EQ(errorOfSchemes("chimera {pipelines = 2"),
            "schedule chimera: expected , or } after an option, got nothing "
            "more");
}

TEST(SpaceOf, HasPinnedOptionsAlone) {
  Question question = someQuestion(4, 1 << 24, 16);
  question.pins.workers = {4};
  auto settings = [&](const std::string &schemes) {
    question.pins.schemes.clear();
    EXPECT_EQ(readSchemes(schemes, question.pins.schemes), "");
    std::multiset<std::string> all;
    for (const Choice &choice : spaceOf(question).choices)
      all.insert(nameOf(choice));
    return all;
  };
  std::multiset<std::string> halving =
      settings("chimera {concatenation = halving}");
  std::multiset<std::string> all = settings("chimera");
  EXPECT_FALSE(halving.empty());
  EXPECT_LT(halving.size(), all.size());
  for (const std::string &name : halving)
    EXPECT_NE(name.find("concatenation = halving"), name.npos) << name;
  EXPECT_TRUE(std::ranges::includes(all, halving));
  // If the user pins a setting twice, the space of plans has it once.
  EXPECT_EQ(settings("chimera, chimera {concatenation = halving}"), all);
  EXPECT_EQ(settings("chimera {pipelines = 2}, chimera {pipelines = 4}"), all);
}

TEST(SpaceOf, HasPinnedCopiesAndMicroBatchesAlone) {
  Question question = someQuestion(8, 1 << 24, 16);
  question.pins.copies = {2};
  question.pins.microBatches = {4, 8};
  Space space = spaceOf(question);
  EXPECT_FALSE(space.choices.empty());
  std::set<std::pair<int32_t, int32_t>> sizes;
  for (const Choice &choice : space.choices) {
    EXPECT_EQ(choice.width, 2);
    sizes.emplace(choice.microBatches, choice.microBatchSize);
  }
  EXPECT_EQ(sizes, (std::set<std::pair<int32_t, int32_t>>{{4, 2}, {8, 1}}));
}

TEST(SpaceOf, GivesTheReasonIfASettingIsImpossible) {
  Question question = someQuestion(4, 1 << 24, 4);
  question.pins.workers = {4};
  ASSERT_EQ(readSchemes("chimera {pipelines = 3}", question.pins.schemes), "");
  Space space = spaceOf(question);
  ASSERT_EQ(space.refusals.size(), 1u);
  EXPECT_EQ(space.refusals[0].choice, "chimera {pipelines = 3}, D=4, W=1, N=4, "
                                      "B=1");
  EXPECT_EQ(space.onlyReason, space.refusals[0].reason);
}

/// For each number of workers there is a reason why the setting is impossible.
/// The reason for the most workers (D=4) is reported, because with few workers
/// most options are impossible for another reason.
TEST(SpaceOf, SaysWhyMostWorkersCannotHaveASetting) {
  Question question = someQuestion(4, 1 << 24, 4);
  ASSERT_EQ(readSchemes("chimera {pipelines = 3}", question.pins.schemes), "");
  Space space = spaceOf(question);
  ASSERT_EQ(space.refusals.size(), 1u);
  EXPECT_EQ(space.refusals[0].choice, "chimera {pipelines = 3}, D=4, W=1, N=4, "
                                      "B=1");
}

/// ZB-V has two stages on each worker. If the model has too few layers, the
/// reason names the layers, because the user has given no number of stages.
TEST(SpaceOf, SaysHowManyLayersASchemeNeeds) {
  Question question = {
      cost::someModel(5, 1), cost::someMachine(4, 1 << 24), 8, {}};
  question.pins.workers = {4};
  ASSERT_EQ(readSchemes("zb-v", question.pins.schemes), "");
  EXPECT_EQ(spaceOf(question).onlyReason,
            "expected a model of at least 8 layers, because zb-v needs 8 "
            "stages for 4 workers, got 5 layers");
}

TEST(SpaceOf, SaysWhichStepsAreTooLong) {
  Question question = someQuestion(1, 1 << 24, 1 << 17);
  ASSERT_EQ(readSchemes("gpipe", question.pins.schemes), "");
  question.pins.microBatchSizes = {1};
  EXPECT_EQ(spaceOf(question).onlyReason,
            "expected at most 65535 micro-batches of a copy, got 131072: take "
            "larger ones");
  question = {
      cost::someModel(256, 1), cost::someMachine(1, 1 << 24), 1 << 15, {}};
  ASSERT_EQ(readSchemes("gpipe", question.pins.schemes), "");
  question.pins.microBatchSizes = {1};
  question.pins.stagesPerWorker = {128};
  EXPECT_EQ(spaceOf(question).onlyReason,
            "expected at most 4194304 forwards and backwards of a copy, got "
            "8388608: take larger micro-batches or fewer stages");
}

TEST(SpaceOf, GivesNoReasonIfThereAreSeveral) {
  Question question = someQuestion(4, 1 << 24, 4);
  ASSERT_EQ(readSchemes("chimera {pipelines = 3}", question.pins.schemes), "");
  Space space = spaceOf(question);
  EXPECT_TRUE(space.choices.empty());
  EXPECT_EQ(space.onlyReason, ""); // the reasons for D=1 and D=4 differ
}

} // namespace
} // namespace chimera::plan
