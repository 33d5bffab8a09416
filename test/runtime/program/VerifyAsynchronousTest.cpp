//===- VerifyAsynchronousTest.cpp - Programs without a flush --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PipeDream and PipeDream-2BW are accepted over a range of sizes; then, as in
// VerifyErrorsTest.cpp, one refused program for each constraint.
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Verify.h"
#include "test/runtime/program/AsynchronousPrograms.h"
#include "test/runtime/program/Changes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

namespace chimera::program {
namespace {

using Rule = Violation::Rule;

TEST(VerifyAsynchronous, AcceptsPipeDreamAnd2BW) {
  for (Updates updates : {Updates::EachMicroBatch, Updates::EachStep})
    for (uint32_t workers : {1, 2, 3, 4, 8})
      for (uint32_t more : {0, 1, 3, 9})
        for (bool split : {false, true})
          for (MessageModel model :
               {MessageModel::Rendezvous, MessageModel::Buffered}) {
            ProgramT program =
                sampleAsynchronous({.workers = workers,
                                    .microBatches = workers + more,
                                    .splitBackward = split,
                                    .dataParallel = 1 + more % 2},
                                   updates);
            program.message_model = model;
            std::vector<Violation> violations = verifyProgram(program);
            ASSERT_TRUE(violations.empty())
                << program.schedule << ", " << workers << " workers, "
                << workers + more << " micro-batches, split " << split << ": "
                << violations.front().message;
          }
}
} // namespace
} // namespace chimera::program
