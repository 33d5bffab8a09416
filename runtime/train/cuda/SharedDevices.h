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

namespace chimera::runtime {

/// NCCL refuses two ranks on one GPU of one host. Where there are some, each
/// process that shares a GPU tells NCCL that it is on a host of its own
/// (NCCL_HOSTID), and NCCL then moves their messages through sockets: slow, but
/// it shows that a program runs. What the environment says already stays. All
/// ranks call it together, before NCCL starts.
///
/// Throws std::invalid_argument where ranks of one process share a GPU.
void letRanksShareDevices(const cuda::CudaDevice &device, Control &control,
                          std::chrono::milliseconds timeout);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_CUDA_SHAREDDEVICES_H
