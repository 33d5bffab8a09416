//===- Errors.cpp - Errors of CUDA and their names ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/cuda/Gpu.h"

#include <algorithm>

using namespace chimera::runtime::test;

namespace {
struct ErrorText {
  cudaError_t error;
  const char *name;
  const char *text;
};
constexpr ErrorText kErrorTexts[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError",
     "initialization error"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorNoDevice, "cudaErrorNoDevice",
     "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice",
     "invalid device ordinal"},
    {cudaErrorInvalidKernelImage, "cudaErrorInvalidKernelImage",
     "device kernel image is invalid"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device"},
    {cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable",
     "uncorrectable ECC error encountered"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle",
     "invalid resource handle"},
    {cudaErrorSymbolNotFound, "cudaErrorSymbolNotFound",
     "named symbol not found"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure",
     "unspecified launch failure"},
    {cudaErrorNotPermitted, "cudaErrorNotPermitted", "operation not permitted"},
};
const ErrorText &textOf(cudaError_t error) {
  static constexpr ErrorText kOther = {cudaErrorUnknown, "cudaErrorUnknown",
                                       "unknown error"};
  auto *found = std::ranges::find(kErrorTexts, error, &ErrorText::error);
  return found == std::end(kErrorTexts) ? kOther : *found;
}
} // namespace

extern "C" {

const char *cudaGetErrorName(cudaError_t error) { return textOf(error).name; }
const char *cudaGetErrorString(cudaError_t error) { return textOf(error).text; }
cudaError_t cudaGetLastError() {
  cudaError_t error = std::exchange(lastError, cudaSuccess);
  return failure() ? failure() : error;
}
cudaError_t cudaPeekAtLastError() { return failure() ? failure() : lastError; }

} // extern "C"
