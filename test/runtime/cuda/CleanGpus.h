//===- CleanGpus.h - Tests that leave nothing on GPUs -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_CUDA_CLEANGPUS_H
#define CHIMERA_TEST_RUNTIME_CUDA_CLEANGPUS_H

#include "test/runtime/cuda/SoftwareGpu.h"

#include <gtest/gtest.h>

namespace chimera::runtime::test {

/// A test on software GPUs. The GPUs are in their initial state when it starts.
/// It fails if it leaves an allocation, stream, event or communicator.
class CleanGpus : public testing::Test {
protected:
  CleanGpus() { resetSoftwareGpu(); }
  ~CleanGpus() override {
    resetSoftwareGpu();
    EXPECT_EQ(liveAllocations(), 0u);
    EXPECT_EQ(liveHostAllocations(), 0u);
    EXPECT_EQ(liveStreams(), 0u);
    EXPECT_EQ(liveEvents(), 0u);
    EXPECT_EQ(liveCommunicators(), 0u);
  }
};

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CUDA_CLEANGPUS_H
