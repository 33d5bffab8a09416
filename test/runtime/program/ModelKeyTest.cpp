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

} // namespace
} // namespace chimera::program
