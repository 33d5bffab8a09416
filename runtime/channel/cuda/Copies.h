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
  /// The number of the GPU of each rank.
  std::vector<int> gpus;
  /// Memory for an all-reduce between several GPUs: what others contribute is
  /// copied there first.
  uint64_t scratchBytes = uint64_t(16) << 20;
};

/// The channels of `rank`, a thread of this process that uses `device`, as all
/// ranks of `hub` are. They may share GPUs. The device outlives them.
///
/// The two ends of a message meet on the host, and whoever posts the second
/// puts a copy on a stream of its own, after what both ends come after. Whoever
/// is the last to start an all-reduce puts all of it on a stream. So the host
/// waits for the hosts of other ranks, and for no GPU; and a stream only waits
/// for what is on streams already, whose work ends without any host.
///
/// A rank's own streams are those of its model of messages (LaneKey.h).
/// `prepare` takes all memory.
std::unique_ptr<Channels> makeCopyChannels(std::shared_ptr<local::Hub> hub,
                                           uint32_t rank,
                                           cuda::CudaDevice &device,
                                           CopyOptions options);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CHANNEL_CUDA_COPIES_H
