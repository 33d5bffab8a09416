//===- KernelsTest.cpp - The kernels compile for GPUs ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks that NVRTC, CUDA's runtime compiler, accepts the kernels. This needs
// no GPU.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/KernelSource.h"

#include <gtest/gtest.h>
#include <nvrtc.h>

#include <string>

namespace {
class Kernels : public testing::TestWithParam<int> {};

TEST_P(Kernels, CompileWithoutAWarning) {
  nvrtcProgram program = nullptr;
  ASSERT_EQ(nvrtcCreateProgram(&program, chimera::runtime::cuda::kKernelSource,
                               "Kernels.cu", 0, nullptr, nullptr),
            NVRTC_SUCCESS);
  const std::string gpu = "--gpu-architecture=sm_" + std::to_string(GetParam());
  const char *options[] = {gpu.c_str(), "--std=c++17", "--fmad=false"};
  nvrtcResult result =
      nvrtcCompileProgram(program, std::size(options), options);
  size_t size = 0;
  nvrtcGetProgramLogSize(program, &size);
  std::string log(size, '\0');
  nvrtcGetProgramLog(program, log.data());
  EXPECT_EQ(result, NVRTC_SUCCESS);
  EXPECT_LE(size, 1u) << log;
  EXPECT_EQ(nvrtcGetCUBINSize(program, &size), NVRTC_SUCCESS);
  EXPECT_GT(size, 1000u);
  nvrtcDestroyProgram(&program);
}

// The compute capabilities of GPUs from Turing (7.5) to Blackwell (12.0).
INSTANTIATE_TEST_SUITE_P(Gpus, Kernels,
                         testing::Values(75, 80, 86, 90, 100, 120),
                         testing::PrintToStringParamName());
} // namespace
