//===- Exchange.cpp - Messages outside of a program -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/transport/Exchange.h"

#include <algorithm>
#include <cstring>

using namespace chimera::runtime;

namespace {
/// Calls `move(piece, offset, size)` for each piece of so many bytes, once for
/// none, with a block of at least that size.
template <typename Move> void inPieces(uint64_t bytes, Move move) {
  constexpr uint64_t kPiece = uint64_t(16) << 20;
  Block piece = makeBlock(std::min(kPiece, bytes));
  uint64_t at = 0;
  do {
    uint64_t size = std::min(kPiece, bytes - at);
    move(piece, at, size);
    at += size;
  } while (at < bytes);
}
} // namespace

void chimera::runtime::send(Transport &transport, uint32_t to, ConstBytes bytes,
                            std::chrono::milliseconds timeout) {
  inPieces(bytes.size(), [&](Block &piece, uint64_t at, uint64_t size) {
    if (size)
      std::memcpy(piece.get(), bytes.data() + at, size);
    transport.wait(transport.postSend(to, {piece.get(), size}), timeout);
  });
}

void chimera::runtime::receive(Transport &transport, uint32_t from, Bytes bytes,
                               std::chrono::milliseconds timeout,
                               const std::function<void()> &onPiece) {
  inPieces(bytes.size(), [&](Block &piece, uint64_t at, uint64_t size) {
    transport.wait(transport.postReceive(from, {piece.get(), size}), timeout);
    if (size)
      std::memcpy(bytes.data() + at, piece.get(), size);
    if (onPiece)
      onPiece();
  });
}
