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

/// The memory of a GPU, or host memory for a GPU, is exhausted.
class OutOfMemory : public std::bad_alloc {
public:
  explicit OutOfMemory(std::string message) : message(std::move(message)) {}
  const char *what() const noexcept override { return message.c_str(); }

private:
  std::string message;
};

/// Throws OutOfMemory or std::runtime_error unless `error` is cudaSuccess. The
/// message has `call` and CUDA's description. CUDA is asynchronous, so the
/// failure may belong to an earlier call.
void expect(cudaError_t error, const char *call);

} // namespace chimera::runtime::cuda

#endif // CHIMERA_RUNTIME_DEVICE_CUDA_CALLS_H
