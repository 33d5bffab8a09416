//===- SharedBytesTest.cpp - Files in which objects share bytes -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Files that chimera never writes: the tests build the FlatBuffers by hand.
//
//===----------------------------------------------------------------------===//

#include "runtime/program/SharedBytes.h"
#include "runtime/program/File.h"
#include "test/runtime/program/AliasedFiles.h"
#include "test/runtime/program/AsynchronousPrograms.h"
#include "test/runtime/program/SamplePrograms.h"
#include "test/runtime/program/TiedPrograms.h"

#include <gtest/gtest.h>

namespace chimera::program {
namespace {

TEST(SharedBytes, NoProgramHasAny) {
  for (const ProgramT &program :
       {samplePipeline(), samplePipeline({.workers = 1, .microBatches = 1}),
        samplePipeline({.bidirectional = true, .doubledForwards = true}),
        samplePipeline({.workers = 3, .ofModel = true})}) {
    std::string error;
    EXPECT_TRUE(deserialize(serialize(program), error)) << error;
  }
}

struct Shared {
  const char *name;
  std::vector<std::byte> (*make)(size_t times);
  size_t times;
};

class AliasedFile : public testing::TestWithParam<Shared> {};

// A reader without this check would copy the text once for each entry. 100000
// copies of a text of 1 MiB would need 100 GB.
TEST_P(AliasedFile, IsRefused) {
  std::string error;
  EXPECT_FALSE(deserialize(GetParam().make(GetParam().times), error));
  EXPECT_EQ(error, "malformed: some lists or texts share bytes");
}

INSTANTIATE_TEST_SUITE_P(
    Of, AliasedFile,
    testing::Values(Shared{"TextTwice", aliasedText, 2},
                    Shared{"Text300Times", aliasedText, 300},
                    Shared{"Text100000Times", aliasedText, 100000},
                    Shared{"Worker100000Times", aliasedWorker, 100000},
                    Shared{"Pipeline100000Times", aliasedPipeline, 100000},
                    Shared{"Communicator100000Times", aliasedCommunicator,
                           100000}),
    [](const auto &info) { return info.param.name; });

} // namespace
} // namespace chimera::program
