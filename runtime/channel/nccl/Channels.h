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
  /// Sums with ncclAllReduce. NCCL chooses the order of summation, so sums may
  /// differ by rounding.
  bool transportAllReduce = false;
  /// The timeout of a call of NCCL.
  std::chrono::milliseconds timeout = {};
  /// Bytes of scratch memory of a stream for all-reduces.
  uint64_t scratchBytes = uint64_t(16) << 20;
};

/// Makes the channels of a rank over NCCL. `control` and `device` belong to the
/// same rank and must outlive the channels. `prepare` creates the
/// communicators, in the same order on all ranks, and allocates all memory.
/// Later calls allocate nothing.
///
/// The message model determines the communicators and streams of a rank.
/// - StreamPerDevice: all communication is on one stream, in the order of the
///   posts.
/// - StreamPerPair: each pair of ranks has a communicator and a stream.
/// - Other models: each direction of a pair has a communicator and a stream.
///
/// Except under StreamPerDevice, each set of ranks with an all-reduce has a
/// communicator and a stream, too. Operations of several streams run
/// concurrently, so the GPU must have room for their kernels.
///
/// The sizes of the two ends of a message are not compared, because NCCL does
/// not check them. The program guarantees that they are equal.
std::unique_ptr<Channels> makeNcclChannels(cuda::CudaDevice &device,
                                           Control &control,
                                           const NcclOptions &options);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CHANNEL_NCCL_CHANNELS_H
