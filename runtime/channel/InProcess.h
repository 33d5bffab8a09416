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

/// Makes the channels of `ranks` ranks, in rank order, for host memory. The
/// ranks are threads of this process; each thread uses its own channels. The
/// channels may be destroyed in any order, but requests must be destroyed
/// before their channels.
///
/// The rank that posts second copies a message, or exchanges the blocks if both
/// ranks posted blocks. After every member has started an all-reduce, the
/// members that wait for it fold it in chunks.
std::vector<std::unique_ptr<Channels>> makeInProcessChannels(uint32_t ranks);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CHANNEL_INPROCESS_H
