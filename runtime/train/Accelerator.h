//===- Accelerator.h - Devices other than the host --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The interface for running ranks on accelerators. A module that is loaded on
// request implements it, so a run on the host does not load the accelerator's
// libraries.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_ACCELERATOR_H
#define CHIMERA_RUNTIME_TRAIN_ACCELERATOR_H

#include "runtime/channel/Channels.h"
#include "runtime/control/Control.h"
#include "runtime/interpreter/MemoryMeter.h"
#include "runtime/model/GraphFactory.h"
#include "runtime/model/tensors/DevicePlacement.h"

namespace chimera::runtime {

struct AcceleratorOptions {
  /// Whether stages compute on the host, as the exact and the synthetic stages
  /// do. The device then only moves their results.
  bool stagesOnHost = false;
  /// Whether the communication library computes the sums of all-reduces, if it
  /// can. It may sum in another order, and so round differently.
  bool transportAllReduce = false;
};

class Accelerator {
public:
  virtual ~Accelerator() = default;

  /// The number of devices that this process may use, at least one.
  virtual uint32_t devices() const = 0;
  /// Makes device number `number` for rank `rank`. Throws if the device cannot
  /// be used.
  virtual std::unique_ptr<Device> makeDevice(uint32_t number,
                                             uint32_t rank) = 0;
  /// Channels between the devices of all ranks. All ranks of `control` must
  /// call this at the same time. `device` and `control` must outlive the
  /// channels. Ranks that are threads of one process may share devices. A call
  /// of NCCL fails if it takes longer than `timeout`.
  virtual std::unique_ptr<Channels>
  makeChannels(Device &device, Control &control,
               std::chrono::milliseconds timeout) = 0;

  /// The placement of stages that compute on the current device of the calling
  /// thread.
  virtual DevicePlacement placement() = 0;
  /// Measures the size of the tensors on the current device of the calling
  /// thread.
  virtual const MemoryMeter &meter() = 0;
  /// Makes graphs for tensor stages on the current device of the calling
  /// thread.
  virtual std::shared_ptr<GraphFactory> makeGraphFactory() = 0;
};

/// Loads the module for CUDA and NCCL. Throws std::runtime_error, with advice,
/// if the module was not built, does not load, or finds no GPU. This function
/// sets environment variables that CUDA and NCCL read. So call it before
/// another thread may read the environment.
std::unique_ptr<Accelerator> loadCuda(const AcceleratorOptions &options);

/// The device number for the rank that has number `localRank` among the ranks
/// of its host. If there are more ranks than devices, ranks share devices.
inline uint32_t deviceNumberOf(uint32_t localRank, uint32_t devices) {
  return localRank % devices;
}

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_ACCELERATOR_H
