//===- OptimizerTest.cpp - Tests of patterns without weight decay ---------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LimitsTest.cpp tests the check of the numbers.
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
  EXPECT_EQ(faultOfPatterns(optimizer, *program.model), "");
  optimizer.no_decay = {"*embedding*", "*.bias"};
  EXPECT_EQ(faultOfPatterns(optimizer, *program.model), "");
  optimizer.no_decay.push_back("*wte*");
  const std::string fault = faultOfPatterns(optimizer, *program.model);
  EXPECT_TRUE(fault.starts_with(
      "expected each pattern of no_decay to match a parameter, got '*wte*': "
      "names are like layers.0.token_embedding, layers."))
      << fault;
}

} // namespace
} // namespace chimera::program
