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

/// The channels of `ranks` threads of this process, of memory of the host, in
/// rank order. Each is for one thread. They share what they need and may be
/// destroyed in any order, requests before their channels.
///
/// A message is copied once, by whichever side posts second. An all-reduce is
/// folded in chunks by those members that are in its wait once every member has
/// started it.
std::vector<std::unique_ptr<Channels>> makeInProcessChannels(uint32_t ranks);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CHANNEL_INPROCESS_H
