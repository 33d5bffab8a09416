//===- Module.cpp - Entry point of the module for CUDA --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The connection between the runtime's CUDA devices and LibTorch. When a queue
// executes a function that calls LibTorch, LibTorch computes on the stream of
// this queue. LibTorch also reports how much memory its tensors use.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/CudaModule.h"

#include "runtime/train/cuda/Accelerator.h"
#include "runtime/train/cuda/TensorGraphs.h"

#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

// No `using namespace chimera::runtime`, since LibTorch also has a class
// Device.
namespace chimera::runtime {

namespace {
class CudaTensorMeter final : public MemoryMeter {
public:
  int64_t currentBytes() const override {
    using namespace c10::CachingAllocator;
    return c10::cuda::CUDACachingAllocator::getDeviceStats(
               c10::cuda::current_device())
        .allocated_bytes[static_cast<size_t>(StatType::AGGREGATE)]
        .current;
  }
};

std::shared_ptr<void> onStream(cudaStream_t stream) {
  return std::make_shared<c10::cuda::CUDAStreamGuard>(
      c10::cuda::getStreamFromExternal(stream, c10::cuda::current_device()));
}
} // namespace

extern "C" __attribute__((visibility("default"))) Accelerator *
chimeraMakeAccelerator7(const AcceleratorOptions &options) {
  static const CudaTensorMeter meter;
  auto accelerator =
      makeCudaAccelerator(options, {.streamGuard = onStream,
                                    .meter = &meter,
                                    .makeGraphFactory = makeTensorGraphs});
  // Sum products of bfloat16 in float32, as tensors/Products.h does.
  at::globalContext().setAllowBF16ReductionCuBLAS(false);
  // Convolutions of float32 round their operands to TF32 by default, which has
  // 10 bits. And some algorithms of cuDNN add in an order that varies.
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setDeterministicCuDNN(true);
  if (!options.stagesOnHost)
    at::globalContext().lazyInitDevice(at::kCUDA);
  return accelerator.release();
}

} // namespace chimera::runtime
