//===- SharedDevices.h - Several ranks on one GPU ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_CUDA_SHAREDDEVICES_H
#define CHIMERA_RUNTIME_TRAIN_CUDA_SHAREDDEVICES_H

#include "runtime/control/Control.h"
#include "runtime/device/cuda/Device.h"

#include <vector>

namespace chimera::runtime {

/// The assignment of a run's ranks to GPUs.
struct GpuAssignment {
  uint32_t ranksOnGpu = 1; ///< number of ranks on this rank's GPU
  /// Whether ranks share GPUs and all ranks are threads of this process.
  bool isShared = false;
  /// Only if isShared: the GPU number of each rank, and a number of the run
  /// that is unique in this process.
  std::vector<int> gpus = {};
  uint64_t run = 0;
};

/// Finds out whether ranks share GPUs. All ranks must call this together,
/// before NCCL starts, since NCCL rejects two ranks on one GPU of one host.
///
/// If ranks that are processes share a GPU, each of them tells NCCL that it is
/// on a separate host (NCCL_HOSTID). NCCL then sends their messages through
/// sockets. This is slow, but shows that a program runs. Variables that are
/// already set are not changed. Throws std::invalid_argument if threads of one
/// process share a GPU while other ranks are in other processes.
GpuAssignment findGpuAssignment(const cuda::CudaDevice &device,
                                Control &control,
                                std::chrono::milliseconds timeout);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_CUDA_SHAREDDEVICES_H
