//===- Kernels.cpp - Libraries of kernels, and launches -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/cuda/CudaCall.h"
#include "test/runtime/cuda/Gpu.h"
#include "test/runtime/cuda/KernelsOnHost.h"
#include "test/runtime/cuda/SoftwareGpu.h"

#include <cstring>

using namespace chimera::runtime::test;

static const KernelOnHost *kernelOf(const void *handle) {
  for (const KernelOnHost &kernel : kernelsOnHost())
    if (&kernel == handle)
      return &kernel;
  return nullptr;
}

/// The address of this object is the handle of every library, because all
/// libraries have the same kernels.
static int library;

static thread_local KernelRecorder kernelRecorder;

void chimera::runtime::test::setKernelRecorder(KernelRecorder recorder) {
  kernelRecorder = std::move(recorder);
}

extern "C" {

cudaError_t cudaLibraryLoadData(cudaLibrary_t *made, const void *code,
                                cudaJitOption *, void **, unsigned,
                                cudaLibraryOption *, void **, unsigned) {
  return call("cudaLibraryLoadData", noDetail, [&] {
    if (std::memcmp(code, kImage, sizeof kImage) != 0)
      return cudaErrorInvalidKernelImage;
    *made = reinterpret_cast<cudaLibrary_t>(&library);
    return cudaSuccess;
  });
}
cudaError_t cudaLibraryUnload(cudaLibrary_t) {
  return call("cudaLibraryUnload", noDetail, [] { return cudaSuccess; });
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t *made, cudaLibrary_t,
                                 const char *name) {
  return call(
      "cudaLibraryGetKernel", [&] { return text(name); },
      [&] {
        for (const KernelOnHost &kernel : kernelsOnHost())
          if (std::string(name) == kernel.name) {
            *made = reinterpret_cast<cudaKernel_t>(
                const_cast<KernelOnHost *>(&kernel));
            return cudaSuccess;
          }
        return cudaErrorSymbolNotFound;
      });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes,
                                  const void *handle) {
  const KernelOnHost *kernel = kernelOf(handle);
  return call(
      "cudaFuncGetAttributes",
      [&] { return text(kernel ? kernel->name : "?"); },
      [&] {
        if (!kernel)
          return cudaErrorInvalidDeviceFunction;
        *attributes = {};
        std::unique_lock lock(gpu().mutex);
        gpu().loaded.emplace(currentDevice, kernel);
        return cudaSuccess;
      });
}

/// Refuses a kernel that no query has loaded on this GPU before. In CUDA, the
/// launch would load the kernel, and so wait for everything that runs on the
/// GPU.
cudaError_t cudaLaunchKernel(const void *handle, dim3 grid, dim3 block,
                             void **arguments, size_t,
                             cudaStream_t streamHandle) {
  const KernelOnHost *kernel = kernelOf(handle);
  return call(
      "cudaLaunchKernel",
      [&] {
        return text(kernel ? kernel->name : "?", " ", nameOf(streamHandle));
      },
      [&] {
        std::shared_ptr<Stream> stream;
        if (!kernel || !find(streamHandle, stream) ||
            deviceOf(streamHandle) != currentDevice)
          return cudaErrorInvalidResourceHandle;
        {
          std::shared_lock lock(gpu().mutex);
          if (!gpu().loaded.contains({currentDevice, kernel}))
            return cudaErrorInvalidDeviceFunction;
        }
        const uint64_t threads = uint64_t{block.x} * block.y * block.z;
        if (threads == 0 || threads > 1024 || grid.x == 0 || grid.y == 0 ||
            grid.z == 0)
          return cudaErrorInvalidConfiguration;
        const std::function<void()> run = kernel->bind(grid, block, arguments);
        put(stream, operation(run));
        if (!stream && kernelRecorder)
          kernelRecorder(run);
        return cudaSuccess;
      });
}

} // extern "C"
