//===- OptimizerTest.cpp - Tests of decay patterns and optimizer state ----===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LimitsTest.cpp tests which learning rates and other numbers of an optimizer
// are refused.
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Optimizer.h"

#include "test/runtime/program/SamplePrograms.h"

#include <gtest/gtest.h>

namespace chimera::program {
namespace {

TEST(Optimizer, APatternMatchesTheWholeName) {
  const std::tuple<const char *, const char *, bool> cases[] = {
      {"", "", true},
      {"", "a", false},
      {"a", "", false},
      {"*", "", true},
      {"*", "layers.0.bias", true},
      {"bias", "layers.0.bias", false},
      {"*bias", "layers.0.bias", true},
      {"*bias", "layers.0.biases", false},
      {"layers.?.bias", "layers.0.bias", true},
      {"layers.?.bias", "layers.10.bias", false},
      {"layers.*.bias", "layers.10.bias", true},
      {"*norm*", "layers.0.norm_1.weight", true},
      {"*norm*", "layers.0.attention.weight", false},
      {"a*b*c", "a.b.b.c.c", true},
      {"a*b*c", "a.c.b", false},
      {"*aab", "aaaab", true},
      {"**a**", "bab", true},
      {"?*", "", false}};
  for (const auto &[pattern, name, expected] : cases)
    EXPECT_EQ(matches(pattern, name), expected) << pattern << " of " << name;
}

// A matcher that tries all lengths of each `*` would take years here.
TEST(Optimizer, APatternOfManyStarsTakesNoTime) {
  std::string pattern;
  for (int i = 0; i < 1000; ++i)
    pattern += "*a";
  EXPECT_FALSE(matches(pattern + "b", std::string(4000, 'a')));
}

TEST(Optimizer, PatternsOnlyRemoveDecay) {
  OptimizerT optimizer;
  EXPECT_TRUE(decays(optimizer, "a.weight", true));
  EXPECT_FALSE(decays(optimizer, "a.bias", false));
  optimizer.no_decay = {"b.*", "a.*"};
  EXPECT_FALSE(decays(optimizer, "a.weight", true));
  EXPECT_TRUE(decays(optimizer, "c.weight", true));
  EXPECT_FALSE(decays(optimizer, "c.bias", false));
}

TEST(Optimizer, APatternThatMatchesNothingIsRefused) {
  const ProgramT program = samplePipeline({.ofModel = true});
  OptimizerT optimizer;
  EXPECT_EQ(faultOfParameters(optimizer, *program.model), "");
  optimizer.no_decay = {"*embedding*", "*.bias"};
  EXPECT_EQ(faultOfParameters(optimizer, *program.model), "");
  optimizer.no_decay.push_back("*wte*");
  const std::string fault = faultOfParameters(optimizer, *program.model);
  EXPECT_TRUE(fault.starts_with(
      "expected each pattern of no_decay to match a parameter, got '*wte*': "
      "names are like layers.0.token_embedding, layers."))
      << fault;
}

/// The sample model. It has width 8, and layers between the first and the last
/// one.
PackageT sampleModel() {
  return std::move(*samplePipeline({.ofModel = true}).model);
}

OptimizerT named(const char *name) {
  OptimizerT optimizer;
  optimizer.name = name;
  return optimizer;
}

UpdateRule ruleOf(const OptimizerT &optimizer, const PackageT &model,
                  uint32_t layer, uint32_t number) {
  return stateLayout(optimizer, model, layer, 1).parameters[number].rule;
}

TEST(Optimizer, MuonIsForTheMatricesOfInnerLayers) {
  const PackageT model = sampleModel();
  OptimizerT muon = named(kMuon);
  const uint32_t layers = layerCount(model);
  ASSERT_GT(layers, 2u);
  auto matricesOf = [&](uint32_t layer) {
    std::vector<std::string> names;
    for (uint32_t i = 0; i < layerParameters(model, layer).size(); ++i)
      if (ruleOf(muon, model, layer, i) == UpdateRule::Muon)
        names.push_back(layerParameters(model, layer)[i].name);
      else
        EXPECT_EQ(ruleOf(muon, model, layer, i), UpdateRule::AdamW);
    return names;
  };
  EXPECT_TRUE(matricesOf(0).empty());
  EXPECT_TRUE(matricesOf(layers - 1).empty());
  EXPECT_EQ(matricesOf(1),
            (std::vector<std::string>{"attention.weight",
                                      "attention_projection.weight",
                                      "mlp.weight", "mlp_projection.weight"}));
  muon.no_muon = {"layers.1.mlp*", "*.attention.weight"};
  EXPECT_EQ(matricesOf(1),
            std::vector<std::string>{"attention_projection.weight"});
}

TEST(Optimizer, OthersUpdateAllParametersAlike) {
  const PackageT model = sampleModel();
  const std::pair<const char *, UpdateRule> rules[] = {
      {kAdamW, UpdateRule::AdamW},
      {kSgd, UpdateRule::Sgd},
      {kSgdMomentum, UpdateRule::SgdMomentum}};
  for (const auto &[name, rule] : rules)
    for (uint32_t layer = 0; layer < layerCount(model); ++layer) {
      for (uint32_t i = 0; i < layerParameters(model, layer).size(); ++i)
        EXPECT_EQ(ruleOf(named(name), model, layer, i), rule);
      EXPECT_EQ(orthogonalisationFlops(named(name), model, layer), 0);
    }
}

TEST(Optimizer, StatesLieOneAfterAnother) {
  const PackageT model = sampleModel();
  const uint32_t layers = layerCount(model);
  for (const char *name : {kAdamW, kMuon, kSgd, kSgdMomentum})
    for (uint32_t first = 0; first < layers; ++first)
      for (uint32_t count = 1; first + count <= layers; ++count) {
        const std::vector<StageParameter> held =
            stageParameters(model, first, count);
        const StateLayout layout =
            stateLayout(named(name), model, first, count);
        ASSERT_EQ(layout.parameters.size(), held.size());
        std::vector<bool> isUsed(static_cast<size_t>(layout.elements));
        int64_t used = 0;
        for (size_t i = 0; i < held.size(); ++i) {
          const auto &[rule, offsets] = layout.parameters[i];
          EXPECT_EQ(rule,
                    ruleOf(named(name), model, held[i].layer, held[i].number));
          ASSERT_EQ(offsets.size(), statesOf(rule).size());
          for (int64_t begin : offsets)
            for (int64_t e = 0; e < held[i].parameter.elements(); ++e, ++used) {
              ASSERT_LT(begin + e, layout.elements);
              EXPECT_FALSE(isUsed[static_cast<size_t>(begin + e)]);
              isUsed[static_cast<size_t>(begin + e)] = true;
            }
        }
        EXPECT_EQ(used, layout.elements);
        for (auto type : {DataType::Float32, DataType::Float64})
          EXPECT_EQ(
              optimizerBytes(named(name), model, {type, type}, first, count),
              used * bytesOf(type));
      }
}

TEST(Optimizer, MuonKeepsOneStateOfAMatrix) {
  const PackageT model = sampleModel();
  const int64_t c = 8, all = parameterCount(model, 1, 1);
  // [3c, c], [c, c], [4c, c] and [c, 4c].
  const int64_t matrices = 12 * c * c;
  EXPECT_EQ(stateLayout(named(kMuon), model, 1, 1).elements,
            2 * all - matrices);
  EXPECT_EQ(stateLayout(named(kMuon), model, 0, 1).elements,
            2 * parameterCount(model, 0, 1));
}

TEST(Optimizer, AnUpdateOfMuonIsThreeProductsAnIteration) {
  const PackageT model = sampleModel();
  const int64_t c = 8;
  // The shorter side is c. The longer sides are 3c, c, 4c and 4c.
  int64_t flops = 0;
  for (int64_t l : {3 * c, c, 4 * c, 4 * c})
    flops += 5 * (2 * c * l * c + 2 * c * c * c + 2 * c * c * l);
  EXPECT_EQ(orthogonalisationFlops(named(kMuon), model, 1), flops);
  EXPECT_EQ(orthogonalisationFlops(named(kMuon), model, 0), 0);
}

TEST(Optimizer, MuonNeedsAMatrix) {
  const PackageT model = sampleModel();
  OptimizerT optimizer = named(kMuon);
  EXPECT_EQ(faultOfParameters(optimizer, model), "");
  optimizer.no_muon = {"*"};
  EXPECT_EQ(faultOfParameters(optimizer, model),
            "expected a matrix that 'muon' updates: of a layer that is neither "
            "the first nor the last, and that no pattern of no_muon matches; "
            "got none: use optimizer(adamw)");
  optimizer = named(kAdamW);
  EXPECT_EQ(faultOfParameters(optimizer, model), "");
}

TEST(Optimizer, PatternsOfNoMuonAreForMuon) {
  const PackageT model = sampleModel();
  OptimizerT optimizer = named(kMuon);
  optimizer.no_muon = {"*router*"};
  EXPECT_EQ(faultOfOptimizer(optimizer), "");
  EXPECT_TRUE(faultOfParameters(optimizer, model)
                  .starts_with("expected each pattern of no_muon to match a "
                               "parameter, got '*router*': names are like "))
      << faultOfParameters(optimizer, model);
  optimizer.name = kAdamW;
  EXPECT_EQ(faultOfOptimizer(optimizer),
            "expected no patterns in no_muon with 'adamw', got 1");
}

} // namespace
} // namespace chimera::program
