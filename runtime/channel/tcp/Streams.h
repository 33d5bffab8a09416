//===- Streams.h - Numbers of the mesh's streams ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_TCP_STREAMS_H
#define CHIMERA_RUNTIME_CHANNEL_TCP_STREAMS_H

#include "runtime/channel/tcp/Mesh.h"

namespace chimera::runtime::tcp {

struct Streams {
  static constexpr Mesh::Stream kControl = 1, kAcknowledgements = 2, kAbort = 3,
                                kAccounts = 4, kAnswers = 5,
                                kMessages = Mesh::kFirstOfData;

  /// The streams of the two exchanges (reduce-scatter and all-gather) of
  /// all-reduce `number` of a group.
  static Mesh::Stream scatter(uint32_t group, uint64_t number) {
    return (Mesh::Stream(group) << 32 | (number & 0x3FFFFFFF)) * 2 + kMessages +
           2;
  }
  static Mesh::Stream gather(uint32_t group, uint64_t number) {
    return scatter(group, number) + 1;
  }
};

} // namespace chimera::runtime::tcp

#endif // CHIMERA_RUNTIME_CHANNEL_TCP_STREAMS_H
