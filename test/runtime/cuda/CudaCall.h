//===- CudaCall.h - Common code of the CUDA functions -----------*- C++ -*-===//
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

/// Runs `body`, which does the work of a CUDA function, and returns its error.
/// If `fault` is an error or the GPUs have failed (failure()), returns this
/// error instead and does not run `body`. With `evenAfterFailure`, runs `body`
/// also after a failure, and then returns the failure's error.
template <typename Body>
cudaError_t runCall(int fault, const Body &body,
                    bool evenAfterFailure = false) {
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
  return runCall(beginCall(name, detail), body);
}
/// Like `call`, for a function that frees something. It does so even after a
/// failure.
template <typename Detail, typename Body>
cudaError_t callEvenAfterFailure(const char *name, const Detail &detail,
                                 const Body &body) {
  return runCall(beginCall(name, detail), body, true);
}
/// Like `call`, for a function whose calls are not recorded.
template <typename Body>
cudaError_t callUnrecorded(const char *name, const Body &body) {
  return runCall(faultOf(name), body);
}

/// The `detail` of a call whose record is only its name.
inline std::string noDetail() { return {}; }

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CUDA_CUDACALL_H
