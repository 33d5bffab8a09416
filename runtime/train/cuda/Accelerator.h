//===- Accelerator.h - GPUs with CUDA and NCCL ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_CUDA_ACCELERATOR_H
#define CHIMERA_RUNTIME_TRAIN_CUDA_ACCELERATOR_H

#include "runtime/device/cuda/Device.h"
#include "runtime/train/Accelerator.h"

namespace chimera::runtime {

/// The functions of a tensor library (LibTorch) that a CUDA accelerator needs.
/// Stages compute with this library.
struct TensorLibrary {
  /// See DevicePlacement::isCuda.
  bool hasCudaTensors = true;
  /// See cuda::DeviceOptions.
  std::function<std::shared_ptr<void>(cudaStream_t)> streamGuard = {};
  std::function<void(cudaStream_t, std::function<void()>)> enqueue = {};
  const MemoryMeter *meter = nullptr;
  std::function<std::shared_ptr<GraphFactory>()> makeGraphFactory = {};
};

/// Throws std::runtime_error if CUDA finds no GPU.
std::unique_ptr<Accelerator>
makeCudaAccelerator(const AcceleratorOptions &options,
                    const TensorLibrary &library);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_CUDA_ACCELERATOR_H
