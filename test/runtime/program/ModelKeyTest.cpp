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

TEST(ModelKey, AreThoseOfAnArchitecture) {
  EXPECT_EQ(modelKey(builtGpt2({.layers = 4,
                                .heads = 2,
                                .width = 16,
                                .context = 8,
                                .vocabulary = 32})),
            R"({"architecture":"gpt2","layers":4,"heads":2,"width":16,)"
            R"("context":8,"vocabulary":32,"dropout":0.0,"tied":false})");
}

/// A sample of exportedModel() has 2 tokens, so 16 bytes.
TEST(ModelKey, OfAPackageAreItsParametersAndASample) {
  EXPECT_EQ(modelKey(exportedModel()),
            R"({"architecture":"exported","layers":3,"parameters":[15,3,3],)"
            R"("sample_bytes":16})");
}

} // namespace
} // namespace chimera::program
