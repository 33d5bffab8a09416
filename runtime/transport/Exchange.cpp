//===- Exchange.cpp - Messages outside of a program -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/transport/Exchange.h"

#include "runtime/transport/Chunks.h"

#include <algorithm>
#include <cstring>

using namespace chimera::runtime;

static constexpr uint64_t kChunk = uint64_t(16) << 20;

void chimera::runtime::send(Transport &transport, uint32_t to, ConstBytes bytes,
                            std::chrono::milliseconds timeout) {
  Block chunk = makeBlock(std::min(kChunk, uint64_t(bytes.size())));
  forEachChunk(bytes.size(), kChunk, [&](uint64_t at, uint64_t size) {
    if (size)
      std::memcpy(chunk.get(), bytes.data() + at, size);
    transport.wait(transport.postSend(to, {chunk.get(), size}), timeout);
  });
}

void chimera::runtime::receive(Transport &transport, uint32_t from, Bytes bytes,
                               std::chrono::milliseconds timeout,
                               const std::function<void()> &onPiece) {
  Block chunk = makeBlock(std::min(kChunk, uint64_t(bytes.size())));
  forEachChunk(bytes.size(), kChunk, [&](uint64_t at, uint64_t size) {
    transport.wait(transport.postReceive(from, {chunk.get(), size}), timeout);
    if (size)
      std::memcpy(bytes.data() + at, chunk.get(), size);
    if (onPiece)
      onPiece();
  });
}
