//===- KernelsOnHost.h - The GPU kernels, compiled for the host -*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_CUDA_KERNELSONHOST_H
#define CHIMERA_TEST_RUNTIME_CUDA_KERNELSONHOST_H

#include <cuda_runtime_api.h>

#include <functional>
#include <span>

namespace chimera::runtime::test {

/// A kernel of runtime/device/cuda/Kernels.cu.
struct KernelOnHost {
  const char *name;
  /// Returns a function that runs the kernel for all threads of `grid`. It uses
  /// the values that the arguments have during the call of `bind`.
  std::function<void()> (*bind)(dim3 grid, dim3 block, void **arguments);
};
std::span<const KernelOnHost> kernelsOnHost();

/// The image that each NVRTC compilation on software GPUs produces. The library
/// that is loaded from this image has all kernels of kernelsOnHost().
inline constexpr char kImage[] = "an image for software GPUs";

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CUDA_KERNELSONHOST_H
