//===- ProfileTest.cpp - Measured costs of layers -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/cost/Model.h"
#include "runtime/program/ModelKey.h"
#include "test/compiler/cost/Models.h"
#include "test/runtime/program/SamplePackages.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

namespace chimera::cost {
namespace {

using nlohmann::json;

json mean(int64_t time) {
  return {{"count", 3}, {"total", 3 * time + 1}, {"median", 1}};
}

json smallProfile() {
  return {{"micro_batch_size", 2},
          {"unit", "ns"},
          {"model", json::parse(program::modelKey(smallModel()))},
          {"weight_type", "float32"},
          {"activation_type", "float32"},
          {"optimizer", {{"name", "sgd"}}},
          {"stages",
           {{{"layers", {0, 2}},
             {"load", mean(7)},
             {"forward", mean(1000)},
             {"input_gradient", mean(800)},
             {"weight_gradient", mean(1200)},
             {"recompute", mean(1100)},
             {"optimizer_step", mean(60)}},
            {{"layers", {2, 3}},
             {"forward", mean(500)},
             {"backward", mean(900)}}}}};
}

std::string errorOfProfile(const json &document) {
  Profile profile;
  return readProfile("p.json", document.dump(), profile);
}

TEST(Profile, HasTheMeansOfStages) {
  Profile profile;
  ASSERT_EQ(readProfile("p.json", smallProfile().dump(), profile), "");
  EXPECT_EQ(profile.microBatchSize, 2);
  EXPECT_EQ(profile.layers, 3);
  ASSERT_EQ(profile.stages.size(), 2u);
  EXPECT_EQ(profile.stages[0].load, 7);
  EXPECT_EQ(profile.stages[0].backward, 0);
  EXPECT_EQ(profile.stages[0].weightGradient, 1200);
  EXPECT_EQ(profile.stages[1].forward, 500);
  EXPECT_EQ(profile.stages[1].update, 0);
  EXPECT_EQ(checkProfile(profile, smallModel(), kFloats, "sgd"), "");
}

TEST(Profile, KnowsRanksThatSharedCores) {
  json document = smallProfile();
  auto hasSharedCores = [&] {
    Profile profile;
    EXPECT_EQ(readProfile("p.json", document.dump(), profile), "");
    return profile.hasSharedCores();
  };
  // An older profile does not have the number of cores. Then we assume that the
  // ranks did not share cores.
  EXPECT_FALSE(hasSharedCores());
  document["threads"] = 2;
  EXPECT_FALSE(hasSharedCores());
  document["cores_per_rank"] = 2;
  EXPECT_FALSE(hasSharedCores());
  document["cores_per_rank"] = 1.5;
  EXPECT_TRUE(hasSharedCores());
  document["threads"] = 1;
  EXPECT_FALSE(hasSharedCores());
}

TEST(Profile, SaysWhatIsWrong) {
  Profile profile;
  EXPECT_EQ(readProfile("p.json", "{", profile),
            "p.json: expected JSON, as chimera-run --profile writes it");
  EXPECT_EQ(readProfile("p.json", std::string(1 << 20, '['), profile),
            "p.json: expected JSON, as chimera-run --profile writes it");
  EXPECT_EQ(readProfile("p.json",
                        "{\"model\":" + std::string(1 << 20, '[') +
                            std::string(1 << 20, ']') + "}",
                        profile),
            "p.json: expected JSON, as chimera-run --profile writes it");
  EXPECT_EQ(readProfile("p.json", "[]", profile), "p.json: expected an object");
  const std::pair<std::function<void(json &)>, const char *> cases[] = {
      {[](json &d) { d.erase("model"); },
       "expected the profile of a program that trains a model"},
      {[](json &d) { d["unit"] = "s"; }, "expected times in ns"},
      {[](json &d) { d["computed_by"] = "exact"; },
       "expected the profile of a run that computed the model, got one with "
       "--stages exact"},
      {[](json &d) { d["device"] = 1; },
       "expected a profile, as chimera-run --profile writes it"},
      {[](json &d) { d.erase("unit"); }, "expected a text \"unit\""},
      {[](json &d) { d["micro_batch_size"] = 0; },
       "expected stages, and a micro-batch of at least one sample and less "
       "than 2^32"},
      {[](json &d) { d["micro_batch_size"] = int64_t{1} << 32; },
       "expected stages, and a micro-batch of at least one sample and less "
       "than 2^32"},
      {[](json &d) { d["micro_batch_size"] = 1.5; },
       "expected \"micro_batch_size\" to be a whole number of at least 0 and "
       "below 2^60"},
      {[](json &d) { d["micro_batch_size"] = "2"; },
       "expected the number \"micro_batch_size\""},
      {[](json &d) { d["stages"] = json::array(); },
       "expected stages, and a micro-batch of at least one sample and less "
       "than 2^32"},
      {[](json &d) { d["stages"][0] = 1; }, "expected stages to be objects"},
      {[](json &d) { d["stages"][0].erase("layers"); },
       "expected the list \"layers\""},
      {[](json &d) {
         d["stages"][0]["layers"] = {0, 1, 2};
       },
       "expected \"layers\" to be two numbers"},
      {[](json &d) {
         d["stages"][0]["layers"] = {2, 2};
       },
       "expected \"layers\" to be a range of layers"},
      {[](json &d) {
         d["stages"][1]["layers"] = {1, 3};
       },
       "expected a stage that begins at layer 2, got one that begins at layer "
       "1"},
      {[](json &d) { d["stages"][0].erase("forward"); },
       "expected times of a forward and a backward for each stage"},
      {[](json &d) { d["stages"][0].erase("weight_gradient"); },
       "expected times of a forward and a backward for each stage"},
      {[](json &d) { d["stages"][0]["forward"] = 1; },
       "expected \"forward\" of a stage to be an object"},
      {[](json &d) { d["stages"][0]["forward"].erase("count"); },
       "expected the number \"count\""},
      {[](json &d) { d["stages"][0]["forward"]["count"] = 0; },
       "expected times of a forward and a backward for each stage"},
      {[](json &d) { d["stages"][0]["forward"]["total"] = -1; },
       "expected \"total\" to be a whole number of at least 0 and below 2^60"},
      {[](json &d) { d["stages"][0]["forward"]["total"] = 1e300; },
       "expected \"total\" to be a whole number of at least 0 and below 2^60"},
      {[](json &d) { d["stages"][0]["forward"]["total"] = int64_t{1} << 60; },
       "expected \"total\" to be a whole number of at least 0 and below 2^60"},
      {[](json &d) { d["stages"][0]["forward"]["total"] = uint64_t{1} << 63; },
       "expected \"total\" to be a whole number of at least 0 and below 2^60"},
      {[](json &d) { d["threads"] = -1; },
       "expected \"threads\" to be a whole number of at least 0 and below "
       "2^60"},
      {[](json &d) { d["cores_per_rank"] = 0; },
       "expected \"cores_per_rank\" to be a number above 0"},
      {[](json &d) { d["cores_per_rank"] = "2"; },
       "expected \"cores_per_rank\" to be a number above 0"},
      {[](json &d) { d["optimizer"] = "sgd"; },
       "expected the object \"optimizer\""}};
  for (const auto &[change, error] : cases) {
    json document = smallProfile();
    change(document);
    EXPECT_EQ(errorOfProfile(document), std::string("p.json: ") + error);
  }
}

TEST(Profile, RefusesProfilesOfTwoModels) {
  Profile profile;
  ASSERT_EQ(readProfile("p.json", smallProfile().dump(), profile), "");
  program::SmallGpt2 deep = kSmallModel, wide = kSmallModel;
  deep.layers = 2;
  wide.width = 32;
  EXPECT_EQ(checkProfile(profile, program::builtGpt2(deep), kFloats, "sgd"),
            "p.json: expected a profile of a model with 4 layers (with "
            "embedding and head), got 3");
  EXPECT_EQ(checkProfile(profile, program::builtGpt2(wide), kFloats, "sgd")
                .find("p.json: the profile is of another model: expected "),
            0u);
  EXPECT_EQ(
      checkProfile(profile, smallModel(),
                   {program::DataType::Float32, program::DataType::BFloat16},
                   "sgd"),
      "p.json: expected a profile of weights and activations of float32, "
      "bfloat16, got float32, float32");
  EXPECT_EQ(checkProfile(profile, smallModel(), kFloats, "adamw"),
            "p.json: expected a profile of the optimizer adamw, got sgd");
}

/// The profile was measured with 8 samples.
TEST(Profile, OfAPackageReachesOtherSizes) {
  const std::shared_ptr<program::PackageT> exported = program::samplePackage();
  constexpr program::Types kDoubles = {program::DataType::Float64,
                                       program::DataType::Float64};
  Model model(exported, kDoubles, optimizerNamed("sgd"));
  json document = smallProfile();
  document["micro_batch_size"] = 8;
  document["model"] = json::parse(program::modelKey(*exported));
  document["weight_type"] = document["activation_type"] = "float64";
  Machine machine = someMachine(2, 1 << 30);
  ASSERT_EQ(
      readProfile("p.json", document.dump(), machine.profiles.emplace_back()),
      "");
  ASSERT_EQ(model.check(4, 1, &machine), "");
  EXPECT_EQ(model.table(4, 1, &machine).layers[2].forward, 250);
  EXPECT_EQ(model.table(2, 1, &machine).layers[2].forward, 125);
  // Now the profile is of a model with longer samples.
  document["model"]["sample_bytes"] = 32;
  ASSERT_EQ(readProfile("p.json", document.dump(), machine.profiles[0]), "");
  EXPECT_EQ(model.check(4, 1, &machine),
            "p.json: the profile is of another model: expected 16 bytes of "
            "inputs in a sample, got 32");
}

/// One of the two profiles has times of whole backwards. The other one has
/// times of split backwards.
TEST(Profile, CombinesWithAProfileOfTheOtherBackwards) {
  Machine machine = someMachine(2, 1 << 30);
  json whole = smallProfile(), split = smallProfile();
  json &first = whole["stages"][0];
  first.erase("input_gradient");
  first.erase("weight_gradient");
  first["backward"] = mean(2100);
  json &last = split["stages"][1];
  last.erase("backward");
  last["input_gradient"] = mean(300);
  last["weight_gradient"] = mean(700);
  last["forward"] = mean(600);
  split["stages"][0]["forward"] = mean(1200);
  auto read = [&](const json &one, const json &other) {
    machine.profiles.resize(2);
    EXPECT_EQ(readProfile("a.json", one.dump(), machine.profiles[0]), "");
    EXPECT_EQ(readProfile("b.json", other.dump(), machine.profiles[1]), "");
    return checkTogether(machine.profiles);
  };
  const std::string nothing =
      "b.json: this profile adds nothing to the earlier ones of micro-batch "
      "size 2: expected whole backwards, split backwards or recomputes that "
      "they lack";
  EXPECT_EQ(read(whole, whole), nothing);
  EXPECT_EQ(read(split, split), nothing);
  EXPECT_EQ(read(smallProfile(), split),
            ""); // new: times of the last stage's halves
  EXPECT_EQ(missingKinds(machine.profiles), kBackward | kRecompute);
  Model model(std::make_shared<program::PackageT>(smallModel()), kFloats,
              optimizerNamed("sgd"));
  for (bool isWholeFirst : {true, false}) {
    EXPECT_EQ(isWholeFirst ? read(whole, split) : read(split, whole), "");
    LayerCost head = model.table(2, 1, &machine).layers[2];
    EXPECT_EQ(head.forward, isWholeFirst ? 500 : 600);
    // The two runs were not equally fast: their forwards differ. So the times
    // that only the second profile has are scaled by the ratio of the forwards.
    EXPECT_EQ(head.backward, isWholeFirst ? 900 : 1079);
    EXPECT_EQ(head.inputGradient, isWholeFirst ? 250 : 300);
    EXPECT_EQ(head.weightGradient, isWholeFirst ? 584 : 700);
    EXPECT_EQ(missingKinds(machine.profiles), kRecompute); // of the head
  }
  // If only one profile has the time of a recompute, this time is used.
  last["recompute"] = mean(650);
  whole["stages"][0].erase("recompute");
  for (bool isWholeFirst : {true, false}) {
    EXPECT_EQ(isWholeFirst ? read(whole, split) : read(split, whole), "");
    EXPECT_EQ(missingKinds(machine.profiles), 0u);
    std::vector<LayerCost> layers = model.table(2, 1, &machine).layers;
    EXPECT_EQ(layers[2].recompute, isWholeFirst ? 542 : 650);
  }
  split["micro_batch_size"] = 4;
  EXPECT_EQ(read(split, whole), "");
  whole["device"] = "host";
  split["device"] = "cuda";
  EXPECT_EQ(read(split, whole),
            "b.json: expected a profile of the device cuda, "
            "as a.json is, got one of host");
}

TEST(Profile, IsSharedByLayersAndAddsUp) {
  Machine machine = someMachine(2, 1 << 30);
  machine.profiles.resize(1);
  ASSERT_EQ(readProfile("p.json", smallProfile().dump(), machine.profiles[0]),
            "");
  Model model(std::make_shared<program::PackageT>(smallModel()), kFloats,
              optimizerNamed("sgd"));
  ASSERT_EQ(model.check(2, 1, &machine), "");
  std::vector<LayerCost> layers = model.table(2, 1, &machine).layers;
  ASSERT_EQ(layers.size(), 3u);
  EXPECT_EQ(layers[0].forward + layers[1].forward, 1007);
  EXPECT_EQ(layers[0].recompute + layers[1].recompute, 1100);
  EXPECT_EQ(layers[0].backward + layers[1].backward, 2000);
  EXPECT_EQ(layers[0].inputGradient + layers[1].inputGradient, 800);
  EXPECT_EQ(layers[0].update + layers[1].update, 60);
  // An embedding does few operations, so it gets almost none of the time of the
  // stage.
  EXPECT_LT(layers[0].forward, 60);
  EXPECT_EQ(layers[2].forward, 500);
  EXPECT_EQ(layers[2].backward, 900);
  EXPECT_EQ(layers[2].inputGradient + layers[2].weightGradient, 900);
  EXPECT_GT(layers[2].inputGradient, 300);
}

/// The profiles are of micro-batches of 4 and 8 samples. With 8 samples, a
/// sample takes longer.
TEST(Profile, ReachesOtherSizes) {
  Machine machine = someMachine(2, 1 << 30);
  for (auto [size, forward] : {std::pair(4, 1000), std::pair(8, 2500)}) {
    json document = smallProfile();
    document["micro_batch_size"] = size;
    document["stages"][1]["forward"] = {{"count", 1}, {"total", forward}};
    ASSERT_EQ(
        readProfile("p.json", document.dump(), machine.profiles.emplace_back()),
        "");
  }
  Model model(std::make_shared<program::PackageT>(smallModel()), kFloats,
              optimizerNamed("sgd"));
  auto forward = [&](int64_t size) {
    return model.table(size, 1, &machine).layers[2].forward;
  };
  EXPECT_EQ(forward(4), 1000);
  EXPECT_EQ(forward(8), 2500);
  EXPECT_EQ(forward(6), 1750);
  EXPECT_EQ(forward(16), 5500);
  // At these sizes, a line through both points would be below 0. So the time
  // per sample stays the one that was measured at size 4.
  EXPECT_EQ(forward(2), 500);
  EXPECT_EQ(forward(1), 250);
  EXPECT_EQ(model.table(1, 1, &machine).layers[2].update,
            model.table(16, 1, &machine).layers[2].update);
  // If the larger micro-batch took less time than the smaller one, the line
  // through both points is not used for larger sizes.
  machine.profiles.pop_back();
  Profile fast = machine.profiles.front();
  fast.microBatchSize = 8;
  for (MeasuredStage &stage : fast.stages)
    stage.forward = stage.forward * 9 / 10;
  machine.profiles.push_back(fast);
  EXPECT_EQ(forward(16), 900);
  EXPECT_EQ(forward(2), 1000);
}

TEST(Profile, RefusesTimesThatOverflow) {
  Machine machine = someMachine(2, 1 << 30);
  machine.profiles.resize(1);
  json document = smallProfile();
  document["stages"][1]["forward"] = {{"count", 1}, {"total", (1LL << 60) - 1}};
  ASSERT_EQ(readProfile("p.json", document.dump(), machine.profiles[0]), "");
  Model model(std::make_shared<program::PackageT>(smallModel()), kFloats,
              optimizerNamed("sgd"));
  for (int64_t size : {1, 2, 3, 16, 64, 1 << 20})
    EXPECT_NE(model.check(size, 1, &machine), "") << size;
}

TEST(Profile, IsOfNoBareModel) {
  Machine machine = someMachine(2, 1 << 30);
  machine.profiles.resize(1);
  ASSERT_EQ(readProfile("p.json", smallProfile().dump(), machine.profiles[0]),
            "");
  EXPECT_EQ(someModel(3, 1).check(1, 1, &machine),
            "p.json: a model of bare layers takes no profile, because its "
            "layers state their costs");
}

} // namespace
} // namespace chimera::cost
