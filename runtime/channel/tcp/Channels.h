//===- Channels.h - Channels over TCP ---------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_TCP_CHANNELS_H
#define CHIMERA_RUNTIME_CHANNEL_TCP_CHANNELS_H

#include "runtime/channel/Channels.h"
#include "runtime/channel/tcp/Mesh.h"

namespace chimera::runtime {

/// Makes the channels of the mesh's rank, for host memory. The mesh must
/// outlive them. The mesh may have one other user: the control
/// (runtime/control) of the same rank.
std::unique_ptr<Channels> makeTcpChannels(tcp::Mesh &mesh);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CHANNEL_TCP_CHANNELS_H
