//===- OptionsTest.cpp - Options by name, and wrong options ---------------===//
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

TEST(Options, HaveUniqueNames) {
  for (const Scheme &scheme : schemes()) {
    std::set<std::string_view> names;
    for (const Option &option : scheme.options) {
      EXPECT_NE(option.summary, "");
      EXPECT_NE(option.values, "");
      EXPECT_TRUE(names.insert(option.name).second) << option.name;
    }
  }
}

TEST(Options, PrintWhatTheyParse) {
  for (const Options &options :
       {chimeraWith(2), chimeraWith(8), chimeraWith(4, Concatenation::Eager),
        chimeraWith(4, Concatenation::Doubling),
        chimeraWith(4, Concatenation::FineTunedDoubling),
        chimeraWith(4, Concatenation::Halving)}) {
    Options copy(chimeraOptions());
    for (size_t i = 0; i < chimeraOptions().size(); ++i)
      EXPECT_EQ(copy.set(chimeraOptions()[i].name, options.print(i)), "");
    EXPECT_EQ(copy, options);
  }
}

TEST(Options, AreSetByName) {
  Options options(chimeraOptions());
  EXPECT_EQ(options, chimeraWith(2));
  EXPECT_FALSE(options.isSet(0));
  EXPECT_EQ(options.set("pipelines", "8"), "");
  EXPECT_EQ(options, chimeraWith(8));
  EXPECT_TRUE(options.isSet(0));
  EXPECT_FALSE(options.isSet(1));
  for (Concatenation concatenation : kConcatenations) {
    Options wanted = chimeraWith(8, concatenation);
    EXPECT_EQ(options.set("concatenation", wanted.print(1)), "");
    EXPECT_EQ(options, wanted);
  }
}

TEST(Options, OfAnotherSchemeAreRefused) {
  Options none, some(chimeraOptions());
  EXPECT_EQ(none.set("pipelines", "2"),
            "expected no options, got \"pipelines\"");
  EXPECT_EQ(some.set("waves", "2"),
            "expected one of the options pipelines, concatenation, got "
            "\"waves\"");
  EXPECT_EQ(some, chimeraWith(2));
}

TEST(Options, OfAnotherValueAreRefused) {
  Options options(chimeraOptions());
  for (const char *text : {"", "two", "2x", " 2", "99999999999999999999"})
    EXPECT_EQ(options.set("pipelines", text),
              "expected pipelines to be 2f for an f that divides half of the "
              "stages, or best, got \"" +
                  std::string(text) + "\"");
  EXPECT_EQ(options.set("concatenation", "fine-tuned"),
            "expected concatenation to be direct, eager, doubling, "
            "fine-tuned-doubling or halving, or best, got "
            "\"fine-tuned\"");
  EXPECT_EQ(options, chimeraWith(2));
}

TEST(Options, AreInTheHelpText) {
  std::string help = schemeHelp();
  for (const Scheme &scheme : schemes())
    EXPECT_NE(help.find(std::string(scheme.name) + ": " + scheme.summary),
              std::string::npos);
  EXPECT_NE(help.find("\n  pipelines = 2: copies of the model"),
            std::string::npos);
  EXPECT_NE(help.find("\n  concatenation = direct: how basic units follow each "
                      "other (direct, eager, doubling, fine-tuned-doubling or "
                      "halving, or best)\n"),
            std::string::npos);
}

} // namespace
} // namespace chimera::schedule
