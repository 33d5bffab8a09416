//===- ModelKeyTest.cpp - Identifies the model of a measurement -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/ModelKey.h"

#include "test/runtime/program/BuiltGpt2.h"
#include "test/runtime/program/SamplePackages.h"

#include <gtest/gtest.h>

namespace chimera::program {
namespace {

/// A sample has 8 tokens, so 64 bytes.
TEST(ModelKey, OfAGpt2IsItsParametersAndASample) {
  EXPECT_EQ(modelKey(builtGpt2({.layers = 1,
                                .heads = 2,
                                .width = 16,
                                .context = 8,
                                .vocabulary = 32})),
            R"({"layers":3,"parameters":[640,3280,544],"sample_bytes":64})");
}

/// A sample has 2 tokens, so 16 bytes.
TEST(ModelKey, OfAPackageIsItsParametersAndASample) {
  EXPECT_EQ(modelKey(*samplePackage()),
            R"({"layers":3,"parameters":[15,3,3],"sample_bytes":16})");
}

TEST(ModelKey, ADifferenceNamesTheFirstLayer) {
  const std::shared_ptr<PackageT> model = samplePackage();
  const std::string key = modelKey(*model);
  EXPECT_EQ(differenceOfModels(key, *model), "");
  auto other = [&](const std::string &from, const std::string &to) {
    std::string changed = key;
    changed.replace(changed.find(from), from.size(), to);
    return differenceOfModels(changed, *model);
  };
  EXPECT_EQ(other("\"layers\":3", "\"layers\":4"),
            "expected 3 layers (with embedding and head), got 4");
  model->layers[1]->path = "blocks.0.";
  EXPECT_EQ(other("[15,3,3]", "[15,4,5]"),
            "expected 3 parameters in layer 1 ('blocks.0'), got 4");
  model->layers[0]->path = "";
  EXPECT_EQ(other("[15,3,3]", "[\"x\",3,3]"),
            "expected 15 parameters in layer 0, got \"x\"");
  EXPECT_EQ(other("\"sample_bytes\":16", "\"sample_bytes\":8"),
            "expected 16 bytes of inputs in a sample, got 8");
  // A key that no program wrote.
  for (const std::string strange :
       {"", "[]", "{}", R"({"parameters":[15,3]})", R"({"parameters":7})"})
    EXPECT_EQ(differenceOfModels(strange, *model),
              "expected the model " + key + ", got " + strange);
}

} // namespace
} // namespace chimera::program
