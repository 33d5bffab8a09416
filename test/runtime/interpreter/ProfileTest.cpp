//===- ProfileTest.cpp - Profiles of runs ---------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/Profile.h"

#include "runtime/interpreter/EarlierRuns.h"
#include "runtime/model/ExactStage.h"
#include "runtime/model/SyntheticStage.h"
#include "runtime/program/Layers.h"
#include "runtime/program/ModelKey.h"
#include "runtime/train/Run.h"
#include "test/runtime/program/SamplePrograms.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace chimera;
using namespace chimera::runtime;
using nlohmann::json;
using program::Opcode;

namespace {
TEST(Durations, KnowTheirMedian) {
  Durations durations;
  for (int64_t ns : {5, 1, 9, 3, 100})
    durations.add(ns);
  EXPECT_EQ(durations.count(), 5u);
  EXPECT_EQ(durations.total(), 118);
  EXPECT_EQ(durations.min(), 1);
  EXPECT_EQ(durations.max(), 100);
  EXPECT_EQ(durations.median(), 5);
}

TEST(Durations, SampleManyEvenly) {
  for (int64_t most : {4095, 4096, 100'000, 1'000'000}) {
    Durations durations;
    for (int64_t ns = 1; ns <= most; ++ns)
      durations.add(ns);
    EXPECT_EQ(durations.count(), uint64_t(most));
    EXPECT_EQ(durations.total(), most * (most + 1) / 2);
    EXPECT_EQ(durations.min(), 1);
    EXPECT_EQ(durations.max(), most);
    double middle = static_cast<double>(most) / 2;
    EXPECT_NEAR(static_cast<double>(durations.median()), middle, most * 0.001)
        << most;
  }
}

TEST(Durations, AreMergedByWeight) {
  // The 100,000 equal durations are too many to keep all, so only a sample of
  // them is kept. The three others are all kept.
  Durations many, few;
  for (int i = 0; i < 100'000; ++i)
    many.add(7);
  for (int i = 0; i < 3; ++i)
    few.add(2);
  few.merge(many);
  EXPECT_EQ(few.count(), 100'003u);
  EXPECT_EQ(few.median(), 7);
  EXPECT_EQ(few.min(), 2);
}

program::Instruction action(Opcode opcode, uint8_t part, uint8_t parts,
                            uint32_t microBatches) {
  return {opcode, program::ValueKind::Activation,
          part,   parts,
          0,      3,
          0,      microBatches,
          0,      0,
          0,      0,
          0,      0};
}

TEST(Profile, CountsActionsAsWholeMicroBatches) {
  Profile profile;
  profile.add(action(Opcode::Forward, 0, 1, 2), nullptr, 200);
  profile.add(action(Opcode::Backward, 1, 2, 1), nullptr, 150);
  profile.add(action(Opcode::OptimizerStep, 0, 1, 8), nullptr, 80);
  auto median = [&](Opcode opcode) {
    return profile.durations().at({Profile::Key::Action, opcode, 3}).median();
  };
  EXPECT_EQ(median(Opcode::Forward), 100);
  EXPECT_EQ(median(Opcode::Backward), 300);
  EXPECT_EQ(median(Opcode::OptimizerStep), 80);
}

/// The duration of a posted send or receive is the measured time. It is not
/// scaled to a whole micro-batch, because the post is one message whatever part
/// it carries.
TEST(Profile, CountsPostsAsTheyAre) {
  Profile profile;
  profile.add(action(Opcode::PostSend, 0, 1, 2), nullptr, 200);
  profile.add(action(Opcode::PostRecv, 1, 2, 1), nullptr, 150);
  for (const auto &[key, durations] : profile.durations())
    EXPECT_EQ(durations.total(), key.opcode == Opcode::PostSend ? 200 : 150);
}

/// The durations of the first step, which warms up, count only for actions that
/// no later step has.
TEST(Profile, LeavesOutTheFirstStep) {
  Profile profile;
  auto forward = action(Opcode::Forward, 0, 1, 1);
  auto backward = action(Opcode::Backward, 0, 1, 1);
  profile.add(forward, nullptr, 900);
  profile.add(backward, nullptr, 800);
  EXPECT_EQ(profile.durations()
                .at({Profile::Key::Action, Opcode::Forward, 3})
                .total(),
            900);
  for (int step = 0; step < 3; ++step) {
    profile.addStep(1000);
    if (step < 2)
      profile.add(forward, nullptr, 10 + step);
  }
  const Durations &forwards =
      profile.durations().at({Profile::Key::Action, Opcode::Forward, 3});
  EXPECT_EQ(forwards.count(), 2u);
  EXPECT_EQ(forwards.total(), 21);
  EXPECT_EQ(forwards.max(), 11);
  EXPECT_EQ(profile.durations()
                .at({Profile::Key::Action, Opcode::Backward, 3})
                .total(),
            800);
}

TEST(Profile, IsUnpackedAsItWasPacked) {
  Profile profile;
  for (int64_t ns : {30, 10, 20})
    profile.addStep(ns);
  auto send = action(Opcode::PostSend, 0, 1, 1);
  auto wait = action(Opcode::Wait, 0, 1, 1);
  for (int i = 0; i < 10'000; ++i)
    profile.add(wait, &send, i);
  profile.add(send, nullptr, 5);
  Profile other = Profile::unpack(profile.pack());
  EXPECT_EQ(other.pack(), profile.pack());
  EXPECT_EQ(other.firstStep(), 30);
  EXPECT_EQ(other.steps().count(), 2u);
  EXPECT_EQ(other.durations().size(), 2u);
}

/// The profile of three steps of a program.
json profileOf(const program::ProgramT &program, const StageFactory &stages,
               uint64_t first = 0,
               const std::vector<std::string> &earlier = {}) {
  SyntheticData data(1);
  TrainingRun run{.program = program, .stages = stages, .data = data};
  run.firstStep = first;
  run.steps = first + 3;
  run.profile = true;
  std::string document;
  run.onResult = [&](const RunResult &result) {
    EXPECT_EQ(result.profiles.size(), program::rankCount(program));
    document = formatProfile(program, result.profiles, rootOf(program),
                             {.stages = "synthetic",
                              .device = "host",
                              .threads = 2,
                              .coresPerRank = 1.5},
                             {first, result.steps}, earlier);
  };
  runInProcess(run);
  return json::parse(document);
}

TEST(Profile, TellsWhatActionsAndWaitsTook) {
  program::ProgramT program = program::samplePipeline(
      {.workers = 2, .bidirectional = true, .splitBackward = true});
  constexpr int64_t kUnit = 1'000'000;
  json profile =
      profileOf(program, makeSyntheticStages(static_cast<double>(kUnit)));
  EXPECT_EQ(profile["unit"], "ns");
  EXPECT_EQ(profile["steps"]["later"]["count"], 2);
  for (uint32_t stage = 0; stage < 2; ++stage) {
    const json &entry = profile["stages"][stage];
    const program::Stage &cost = program.stages[stage];
    for (auto [name, units] : {std::pair("forward", cost.forward()),
                               {"input_gradient", cost.input_gradient()},
                               {"weight_gradient", cost.weight_gradient()}}) {
      // Both replicas of the stage together have 8 micro-batches in each step.
      // Two of the three steps count.
      EXPECT_EQ(entry[name]["count"], 16) << name;
      EXPECT_GE(entry[name]["min"], units * kUnit) << name;
      EXPECT_LE(entry[name]["min"], entry[name]["median"]) << name;
      EXPECT_LE(entry[name]["median"], entry[name]["max"]) << name;
    }
    EXPECT_FALSE(entry.contains("backward"));
    EXPECT_EQ(entry["optimizer_step"]["count"], 4);
  }
  for (const json &rank : profile["ranks"]) {
    int64_t known = 0;
    for (const char *group : {"waits", "posts", "other"})
      for (const auto &[name, durations] : rank[group].items())
        known += durations["total"].get<int64_t>();
    // In each step, 4 micro-batches of each direction pass each of the two
    // workers.
    for (const char *name : {"send_activation", "receive_activation",
                             "send_gradient", "receive_gradient"}) {
      EXPECT_EQ(rank["waits"][name]["count"], 8) << name;
      EXPECT_EQ(rank["posts"][name]["count"], 8) << name;
    }
    EXPECT_EQ(rank["waits"]["all_reduce_weight_gradient"]["count"], 4);
    EXPECT_EQ(rank["waits"]["all_reduce_loss"]["count"], 2);
    // The rest of the time of the run is in actions, which sleep.
    EXPECT_GT(known, 0);
    EXPECT_LT(known, profile["steps"]["first"].get<int64_t>() +
                         profile["steps"]["later"]["total"].get<int64_t>());
  }
}

TEST(Profile, DescribesItsRun) {
  program::ProgramT program =
      program::samplePipeline({.workers = 3, .ofModel = true});
  json profile = profileOf(program, makeSyntheticStages(/*unitNanoseconds=*/0));
  const program::PackageT &model = *program.model;
  EXPECT_EQ(profile["schedule"], program.schedule);
  EXPECT_EQ(profile["micro_batches"], program.micro_batches);
  EXPECT_EQ(profile["micro_batch_size"], program.micro_batch_size);
  EXPECT_EQ(profile["threads"], 2);
  EXPECT_EQ(profile["cores_per_rank"], 1.5);
  EXPECT_EQ(profile["computed_by"], "synthetic");
  EXPECT_EQ(profile["device"], "host");
  EXPECT_EQ(profile["weight_type"], program::nameOf(program.weight_type));
  EXPECT_EQ(profile["activation_type"],
            program::nameOf(program.activation_type));
  EXPECT_EQ(profile["optimizer"]["name"], program.optimizer->name);
  EXPECT_EQ(profile["optimizer"]["beta2"], program.optimizer->beta2);
  EXPECT_EQ(profile["model"], json::parse(program::modelKey(model)));
  // The stages have consecutive layers, and each layer is in exactly one stage.
  uint32_t next = 0;
  for (const json &stage : profile["stages"]) {
    EXPECT_EQ(stage["layers"][0], next);
    next = stage["layers"][1];
  }
  EXPECT_EQ(next, program::layerCount(model));
  // Without a model, the profile has no model and no layers.
  json bare = profileOf(program::samplePipeline({.workers = 2}),
                        makeSyntheticStages(/*unitNanoseconds=*/0));
  EXPECT_FALSE(bare.contains("model"));
  EXPECT_FALSE(bare["stages"][0].contains("layers"));
}

TEST(Profile, CountsPartsAndRanges) {
  json profile =
      profileOf(program::samplePipeline(
                    {.workers = 2, .microBatches = 4, .doubledForwards = true}),
                makeExactStage);
  EXPECT_EQ(profile["stages"][0]["forward"]["count"], 4);
  EXPECT_EQ(profile["stages"][0]["backward"]["count"], 8);
}

TEST(Profile, KeepsTheProfilesOfEarlierRuns) {
  program::ProgramT two = program::samplePipeline({.workers = 2}),
                    three = program::samplePipeline({.workers = 3});
  json first = profileOf(two, makeExactStage);
  EXPECT_EQ(first["first_step"], 1);
  EXPECT_EQ(first["last_step"], 3);
  EXPECT_FALSE(first.contains("earlier_runs"));
  const std::vector<std::string> earlier =
      parseEarlierProfiles(first.dump(), 3);
  ASSERT_EQ(earlier.size(), 1u);
  json second = profileOf(three, makeExactStage, 3, earlier);
  EXPECT_EQ(second["first_step"], 4);
  EXPECT_EQ(second["last_step"], 6);
  EXPECT_EQ(second["workers"], 3);
  EXPECT_EQ(second["earlier_runs"], json::array({first}));
  json third =
      profileOf(two, makeExactStage, 6, parseEarlierProfiles(second.dump(), 6));
  json alone = second;
  alone.erase("earlier_runs");
  EXPECT_EQ(third["earlier_runs"], json::array({first, alone}));
  // A checkpoint after step 5 is older than the profile of steps 4 to 6.
  EXPECT_EQ(parseEarlierProfiles(third.dump(), 5).size(), 1u);
  EXPECT_TRUE(parseEarlierProfiles(third.dump(), 2).empty());
  for (const char *wrong :
       {"", "7", "[]", "{}", R"({"last_step": -1, "stages": []})",
        R"({"last_step": 1, "stages": [], "earlier_runs": [7]})",
        R"({"last_step": 1, "stages": [], "earlier_runs": 7})"})
    EXPECT_THROW(parseEarlierProfiles(wrong, 9), std::runtime_error) << wrong;
}
} // namespace
