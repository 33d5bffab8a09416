//===- Calls.h - Calls of CUDA that may fail --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DEVICE_CUDA_CALLS_H
#define CHIMERA_RUNTIME_DEVICE_CUDA_CALLS_H

#include <cuda_runtime_api.h>

#include <new>
#include <string>

namespace chimera::runtime::cuda {

/// The error if the memory of a GPU, or pinned host memory, is exhausted.
class OutOfMemory : public std::bad_alloc {
public:
  explicit OutOfMemory(std::string message) : message(std::move(message)) {}
  const char *what() const noexcept override { return message.c_str(); }

private:
  std::string message;
};

/// Throws OutOfMemory or std::runtime_error unless `error` is cudaSuccess. The
/// message has `call` and CUDA's description. CUDA is asynchronous, so an
/// earlier call may have caused the failure.
void expect(cudaError_t error, const char *call);

} // namespace chimera::runtime::cuda

#endif // CHIMERA_RUNTIME_DEVICE_CUDA_CALLS_H
