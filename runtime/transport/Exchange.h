//===- Exchange.h - Messages outside of a program ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What ranks tell each other before the first step and after the last one. It
// goes through blocks (see Block.h), so that any memory can be sent and
// received into: the transport sees a copy only.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRANSPORT_EXCHANGE_H
#define CHIMERA_RUNTIME_TRANSPORT_EXCHANGE_H

#include "runtime/transport/Transport.h"

#include <type_traits>

namespace chimera::runtime {

/// Sends `bytes` to rank `to`, which calls receive with as many. Large ones go
/// in pieces, each waited for at most for `timeout`. Throws what waits throw.
void send(Transport &transport, uint32_t to, ConstBytes bytes,
          std::chrono::milliseconds timeout);
/// Calls `onPiece` after each piece.
void receive(Transport &transport, uint32_t from, Bytes bytes,
             std::chrono::milliseconds timeout,
             const std::function<void()> &onPiece = {});

/// The same of one value, which is plain memory.
template <typename Value>
void sendValue(Transport &transport, uint32_t to, const Value &value,
               std::chrono::milliseconds timeout) {
  static_assert(std::is_trivially_copyable_v<Value>);
  send(transport, to, std::as_bytes(std::span(&value, 1)), timeout);
}
template <typename Value>
Value receiveValue(Transport &transport, uint32_t from,
                   std::chrono::milliseconds timeout) {
  static_assert(std::is_trivially_copyable_v<Value>);
  Value value{};
  receive(transport, from, std::as_writable_bytes(std::span(&value, 1)),
          timeout);
  return value;
}

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRANSPORT_EXCHANGE_H
