//===- Calls.cpp - Calls of CUDA that may fail ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Calls.h"

#include <cstdio>
#include <stdexcept>

using namespace chimera::runtime;

void cuda::expect(cudaError_t error, const char *call) {
  if (error == cudaSuccess)
    return;
  // Clear the error. Otherwise the next call of cudaGetLastError would return
  // this error.
  (void)cudaGetLastError();
  std::string message = std::string(call) + ": " + cudaGetErrorString(error) +
                        " (" + cudaGetErrorName(error) + ")";
  if (error != cudaErrorMemoryAllocation)
    throw std::runtime_error("the GPU failed: " + message);
  size_t left = 0, all = 0;
  if (cudaMemGetInfo(&left, &all) == cudaSuccess) {
    char text[80];
    std::snprintf(text, sizeof(text), ", with %.2f of %.2f GiB left",
                  static_cast<double>(left) / double(1 << 30),
                  static_cast<double>(all) / double(1 << 30));
    message += text;
  }
  throw OutOfMemory("the GPU has no memory left: " + message);
}
