//===- InProcess.h - Ranks as threads of one process ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_INPROCESS_H
#define CHIMERA_RUNTIME_CHANNEL_INPROCESS_H

#include "runtime/channel/Channels.h"

namespace chimera::runtime {

/// Channels between `ranks` threads of this process, in rank order, for host
/// memory. Each is used by one thread. They may be destroyed in any order, but
/// requests must be destroyed before their channels.
///
/// A message is copied once, by the rank that posts second. After every member
/// has started an all-reduce, the members that wait for it fold it in chunks.
std::vector<std::unique_ptr<Channels>> makeInProcessChannels(uint32_t ranks);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CHANNEL_INPROCESS_H
