//===- Channels.h - Channels between GPUs over NCCL -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_NCCL_CHANNELS_H
#define CHIMERA_RUNTIME_CHANNEL_NCCL_CHANNELS_H

#include "runtime/channel/Channels.h"
#include "runtime/control/Control.h"
#include "runtime/device/cuda/Device.h"

namespace chimera::runtime {

struct NcclOptions {
  /// Sum with ncclAllReduce, which may round differently.
  bool ownAllReduce = false;
  /// How long NCCL may take for one of its own calls.
  std::chrono::milliseconds timeout = {};
  /// Scratch memory of an all-reduce.
  uint64_t scratchBytes = uint64_t(16) << 20;
};

/// The channels of the rank that `control` and `device` belong to, both of
/// which outlive them. `prepare` makes the communicators, in one order at all
/// ranks, and all memory: later calls take none.
///
/// Under StreamPerDevice all communication of the rank is on one stream, in the
/// order of its posts. Under StreamPerPair two ranks have a communicator with a
/// stream of its own, under the other models one for each direction, and so has
/// every set of ranks that sum. Their operations run side by side, for which
/// the GPU must have room.
///
/// Whether the two ends of a message agree on its size is the program's matter:
/// NCCL does not look.
std::unique_ptr<Channels> makeNcclChannels(cuda::CudaDevice &device,
                                           Control &control,
                                           const NcclOptions &options);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CHANNEL_NCCL_CHANNELS_H
