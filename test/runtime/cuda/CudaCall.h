//===- CudaCall.h - The common parts of all runtime calls -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_CUDA_CUDACALL_H
#define CHIMERA_TEST_RUNTIME_CUDA_CUDACALL_H

#include "test/runtime/cuda/Calls.h"
#include "test/runtime/cuda/Gpu.h"

namespace chimera::runtime::test {

/// Makes a call, unless it should return `fault` or the error of an earlier
/// failure instead.
template <typename Body>
cudaError_t make(int fault, const Body &body, bool evenAfterFailure = false) {
  auto error = static_cast<cudaError_t>(fault);
  if (!error && isInHostFunction)
    error = cudaErrorNotPermitted;
  if (!error && !evenAfterFailure)
    error = failure();
  if (!error)
    error = body();
  if (!error && evenAfterFailure)
    error = failure();
  if (error)
    lastError = error;
  return error;
}
template <typename Detail, typename Body>
cudaError_t call(const char *name, const Detail &detail, const Body &body) {
  return make(beginCall(name, detail), body);
}
/// A call that frees something, which it does even after a failure.
template <typename Detail, typename Body>
cudaError_t drop(const char *name, const Detail &detail, const Body &body) {
  return make(beginCall(name, detail), body, true);
}
/// A call that is not recorded.
template <typename Body> cudaError_t ask(const char *name, const Body &body) {
  return make(faultOf(name), body);
}

/// The detail of a call whose name is enough.
inline std::string nothing() { return {}; }

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CUDA_CUDACALL_H
