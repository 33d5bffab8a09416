//===- DevicePlacement.h - The device of a stage's tensors ------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_TENSORS_DEVICEPLACEMENT_H
#define CHIMERA_RUNTIME_MODEL_TENSORS_DEVICEPLACEMENT_H

#include "runtime/model/StageKernels.h"

namespace chimera::runtime {

/// The device of a stage: the host, or the current GPU of the thread that calls
/// the stage. All buffers that are passed to the stage are on that device. On a
/// GPU, all functions of the stage except Stage::initialize put kernels on
/// LibTorch's current stream and return without waiting for the GPU.
struct DevicePlacement {
  /// Whether tensors are LibTorch's CUDA tensors. Tensors of a software GPU are
  /// host tensors.
  bool isCuda = false;
  /// The kernels of the GPU (StageKernels.h). Null on the host, where stages
  /// call ordinary functions instead.
  StageKernels *kernels = nullptr;

  bool isOnGpu() const { return kernels; }
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_TENSORS_DEVICEPLACEMENT_H
