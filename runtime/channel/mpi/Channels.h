//===- Channels.h - Channels of an MPI job ----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_MPI_CHANNELS_H
#define CHIMERA_RUNTIME_CHANNEL_MPI_CHANNELS_H

#include "runtime/channel/Channels.h"

namespace chimera::runtime {

struct MpiOptions {
  /// While the rank computes, a separate thread moves messages and drives
  /// all-reduces. Requires MpiSession::allowsProgressThread.
  bool progressThread = false;
  /// The groups of Channels::prepare use MPI_Iallreduce. Integer sums are the
  /// same as without this option. Floating-point sums differ by rounding,
  /// because MPI chooses the order of summation.
  bool transportAllReduce = false;
};

/// MpiSession::makeChannels without its checks. Requires a session.
std::unique_ptr<Channels> makeMpiChannels(const MpiOptions &options);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CHANNEL_MPI_CHANNELS_H
