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

/// Where the ranks of a run compute.
struct Seating {
  uint32_t ranksOnGpu = 1; ///< that have this rank's GPU
  /// Whether ranks share GPUs, and all are threads of this process.
  bool isShared = false;
  /// Where that is so: the number of the GPU of each rank, and a number of the
  /// run that no other one of this process has.
  std::vector<int> gpus = {};
  uint64_t run = 0;
};

/// Finds out whether ranks share GPUs. All ranks call it together, before NCCL
/// starts, which refuses two ranks on one GPU of one host.
///
/// Where ranks that are processes share one, each that does tells NCCL that it
/// is on a host of its own (NCCL_HOSTID), and NCCL then moves their messages
/// through sockets: slow, but it shows that a program runs. What the
/// environment says already stays. Throws std::invalid_argument where threads
/// of one process share a GPU and other ranks are in other processes.
Seating seatRanks(const cuda::CudaDevice &device, Control &control,
                  std::chrono::milliseconds timeout);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_CUDA_SHAREDDEVICES_H
