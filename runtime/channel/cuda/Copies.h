//===- Copies.h - Channels between GPUs of one process ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_CUDA_COPIES_H
#define CHIMERA_RUNTIME_CHANNEL_CUDA_COPIES_H

#include "runtime/channel/Hub.h"
#include "runtime/device/cuda/Device.h"

namespace chimera::runtime {

struct CopyOptions {
  /// The GPU number of each rank.
  std::vector<int> gpus;
  /// Bytes of scratch memory of a stream for all-reduces between several GPUs.
  /// Contributions on other GPUs are first copied there.
  uint64_t scratchBytes = uint64_t(16) << 20;
};

/// Makes the channels of `rank`. All ranks of `hub` are threads of this process
/// and use CUDA devices; several ranks may share a GPU. The device must outlive
/// the channels.
///
/// The two ends of a message are matched on the host. The rank that posts
/// second enqueues the copy on one of its own streams, after the events of both
/// ends. The rank that starts an all-reduce last enqueues the whole all-reduce
/// on its stream. So the host waits for hosts of other ranks but not for a GPU.
/// A stream only waits for operations that are already enqueued, and these
/// complete without any host.
///
/// The message model determines the streams of a rank (StreamKey.h). `prepare`
/// allocates all memory.
std::unique_ptr<Channels> makeCopyChannels(std::shared_ptr<local::Hub> hub,
                                           uint32_t rank,
                                           cuda::CudaDevice &device,
                                           CopyOptions options);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CHANNEL_CUDA_COPIES_H
