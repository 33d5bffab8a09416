//===- OptionsTest.cpp - Options by name, and what is refused ------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

#include <set>

namespace chimera::schedule {
namespace {

TEST(Options, HaveOneNameEach) {
  std::set<std::string_view> names;
  for (const SchemeOption &option : schemeOptions()) {
    EXPECT_NE(option.summary, "");
    EXPECT_NE(option.values, "");
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    EXPECT_EQ(findSchemeOption(option.name), &option);
  }
  EXPECT_EQ(findSchemeOption("pipeline"), nullptr);
}

/// Each scheme's options are in the table, and each of the table is some
/// scheme's.
TEST(Options, BelongToSchemes) {
  std::set<std::string_view> used;
  for (const Scheme &scheme : schemes())
    for (std::string_view name : scheme.options) {
      EXPECT_NE(findSchemeOption(name), nullptr) << name;
      used.insert(name);
    }
  EXPECT_EQ(used.size(), schemeOptions().size());
}

TEST(Options, PrintWhatTheyParse) {
  for (const SchemeOptions &options :
       {choose(2), choose(8), choose(4, Concatenation::Eager),
        choose(4, Concatenation::Doubling),
        choose(4, Concatenation::FineTunedDoubling),
        choose(4, Concatenation::Halving)})
    for (const SchemeOption &option : schemeOptions()) {
      SchemeOptions copy;
      for (const SchemeOption &each : schemeOptions())
        EXPECT_TRUE(each.parse(each.print(options), copy));
      EXPECT_EQ(copy, options) << option.name;
    }
}

TEST(Options, AreSetByName) {
  const Scheme &chimera = *findScheme("chimera");
  SchemeOptions options;
  EXPECT_EQ(setOption(chimera, "pipelines", "8", options), "");
  EXPECT_EQ(options, choose(8));
  EXPECT_EQ(setOption(chimera, "concatenation", "eager", options), "");
  EXPECT_EQ(options, choose(8, Concatenation::Eager));
  EXPECT_EQ(setOption(chimera, "concatenation", "doubling", options), "");
  EXPECT_EQ(options, choose(8, Concatenation::Doubling));
  EXPECT_EQ(setOption(chimera, "concatenation", "fine-tuned-doubling", options),
            "");
  EXPECT_EQ(options, choose(8, Concatenation::FineTunedDoubling));
  EXPECT_EQ(setOption(chimera, "concatenation", "halving", options), "");
  EXPECT_EQ(options, choose(8, Concatenation::Halving));
  EXPECT_EQ(setOption(chimera, "concatenation", "direct", options), "");
  EXPECT_EQ(options, choose(8));
}

TEST(Options, OfAnotherSchemeAreRefused) {
  SchemeOptions options;
  EXPECT_EQ(setOption(*findScheme("gpipe"), "pipelines", "2", options),
            "expected no options, got \"pipelines\"");
  EXPECT_EQ(setOption(*findScheme("chimera"), "waves", "2", options),
            "expected one of the options pipelines, concatenation, got "
            "\"waves\"");
  EXPECT_EQ(options, SchemeOptions());
}

TEST(Options, OfAnotherValueAreRefused) {
  const Scheme &chimera = *findScheme("chimera");
  SchemeOptions options;
  for (const char *text : {"", "two", "2x", " 2", "99999999999999999999"})
    EXPECT_EQ(setOption(chimera, "pipelines", text, options),
              "expected pipelines to be 2f for an f that divides half of the "
              "stages, got \"" +
                  std::string(text) + "\"");
  EXPECT_EQ(setOption(chimera, "concatenation", "fine-tuned", options),
            "expected concatenation to be direct, eager, doubling, "
            "fine-tuned-doubling or halving, got "
            "\"fine-tuned\"");
  EXPECT_EQ(options, SchemeOptions());
}

TEST(Options, StandInTheHelp) {
  std::string help = schemeHelp();
  for (const Scheme &scheme : schemes())
    EXPECT_NE(help.find(std::string(scheme.name) + ": " + scheme.summary),
              std::string::npos);
  EXPECT_NE(help.find("\n  pipelines = 2: copies of the model"),
            std::string::npos);
  EXPECT_NE(help.find("\n  concatenation = direct: how basic units follow each "
                      "other (direct, eager, doubling, fine-tuned-doubling or "
                      "halving)\n"),
            std::string::npos);
}

/// A schedule is made only for the scheme's own pipelines.
TEST(Options, PipelinesMustBeTheSchemes) {
  Case c = makeCase("chimera", 8, 8);
  EXPECT_EQ(checkPipelines(*c.scheme, c.problem), "");
  EXPECT_EQ(checkPipelines(*c.scheme, c.problem, choose(4)),
            "expected the scheme's 4 pipelines, got 2");
  EXPECT_EQ(checkPipelines(*findScheme("gpipe"), c.problem),
            "expected the scheme's 1 pipeline, got 2");
  EXPECT_EQ(checkPipelines(*findScheme("gems"), c.problem),
            "expected the scheme's direction, placement and micro-batches for "
            "pipeline 0");
  c.problem.workers = 9;
  EXPECT_EQ(checkPipelines(*c.scheme, c.problem),
            "expected as many workers as stages (8), got 9");
  c.problem.stages.resize(1);
  EXPECT_EQ(checkPipelines(*c.scheme, c.problem).substr(0, 38),
            "expected at least 2 stages, got 1: one");
}

} // namespace
} // namespace chimera::schedule
