//===- OrderingsTest.cpp - Each missing wait is reported ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/hostile/Orderings.h"

#include "runtime/proof/Verify.h"
#include "test/runtime/program/AsynchronousPrograms.h"
#include "test/runtime/program/BucketPrograms.h"
#include "test/runtime/program/SamplePrograms.h"

#include <gtest/gtest.h>

using namespace chimera;
using program::ProgramT;
using program::SampleOptions;

namespace {
void expectReported(ProgramT program) {
  runtime::hostile::OrderingCounts counts;
  for (const program::Violation &violation : program::verifyProgram(program))
    FAIL() << violation.message;
  EXPECT_EQ(runtime::hostile::checkOrderings(program, counts), "");
  // Without enough needed orderings, this program would test nothing.
  EXPECT_GT(counts.needed, counts.orderings / 3);
}

TEST(Orderings, OfSamplesAreReportedWhereNoOtherImpliesThem) {
  for (bool other : {false, true})
    for (uint32_t workers : {2, 3})
      expectReported(program::samplePipeline(
          {.workers = workers,
           .microBatches = 2,
           .bidirectional = other,
           .splitBackward = other,
           .firstBackwardOverwrites = workers == 3,
           .backwardParts = other ? 1u : 2u,
           .recompute = other ? SampleOptions::Recompute::All
                              : SampleOptions::Recompute::None,
           .dataParallel = other ? 1u : 2u}));
}

TEST(Orderings, WithoutAFlushToo) {
  for (program::Updates updates :
       {program::Updates::EachMicroBatch, program::Updates::EachStep})
    expectReported(program::sampleAsynchronous(
        {.workers = 2, .microBatches = 3}, updates));
}
} // namespace
