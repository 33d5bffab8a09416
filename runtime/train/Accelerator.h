//===- Accelerator.h - Devices that are not the host ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a process needs to run ranks on accelerators. It comes from a module
// that is loaded when it is asked for, so that who runs on the host links no
// library of theirs.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_ACCELERATOR_H
#define CHIMERA_RUNTIME_TRAIN_ACCELERATOR_H

#include "runtime/channel/Channels.h"
#include "runtime/control/Control.h"
#include "runtime/interpreter/MemoryMeter.h"
#include "runtime/stage/Graphs.h"
#include "runtime/stage/StageKernels.h"

namespace chimera::runtime {

struct AcceleratorOptions {
  /// Whether stages compute on the host, as exact and synthetic ones do. The
  /// device then moves what they made, and nothing else.
  bool stagesOnHost = false;
  /// Whether sums are the library's own, where it makes them, which may round
  /// differently.
  bool ownAllReduce = false;
};

class Accelerator {
public:
  virtual ~Accelerator() = default;

  /// How many devices this process may use, at least one.
  virtual uint32_t devices() const = 0;
  /// The device `number`, for a rank. Throws where it cannot be used.
  virtual std::unique_ptr<Device> makeDevice(uint32_t number,
                                             uint32_t rank) = 0;
  /// Between the devices of the ranks of `control`, each of which makes them at
  /// the same time. Neither argument ends before them. Ranks that are threads
  /// of one process may share devices. NCCL's own calls fail after `timeout`.
  virtual std::unique_ptr<Channels>
  makeChannels(Device &device, Control &control,
               std::chrono::milliseconds timeout) = 0;

  /// For stages that compute on the device of the calling thread.
  virtual StageKernels &kernels() = 0;
  /// Of the tensors on the device of the calling thread.
  virtual const MemoryMeter &meter() = 0;
  /// For stages of tensors on the device of the calling thread.
  virtual std::shared_ptr<Graphs> makeGraphs() = 0;
};

/// Loads the module for CUDA and NCCL. Throws std::runtime_error where it was
/// not built, does not load, or finds no GPU, with what to do. To be called
/// before other threads read the environment, of which CUDA and NCCL read what
/// is set here.
std::unique_ptr<Accelerator> loadCuda(const AcceleratorOptions &options);

/// The device of the `place`-th rank of its host, of `ranks`. Ranks share
/// devices where there are more of them.
inline uint32_t deviceOf(uint32_t place, uint32_t devices) {
  return place % devices;
}

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_ACCELERATOR_H
