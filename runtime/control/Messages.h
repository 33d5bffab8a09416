//===- Messages.h - Messages of any size ------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CONTROL_MESSAGES_H
#define CHIMERA_RUNTIME_CONTROL_MESSAGES_H

#include "runtime/control/Control.h"

#include <functional>
#include <span>
#include <type_traits>
#include <vector>

namespace chimera::runtime {

/// Sends a message of any size to rank `to`, which must call receiveLarge with
/// the same size. Large messages are split into pieces, and `timeout` applies
/// to each piece. Both functions throw the exceptions of Control::send and
/// Control::receive.
void sendLarge(Control &control, uint32_t to, ConstBytes bytes,
               std::chrono::milliseconds timeout);
/// Receives a message of sendLarge. `onPiece` is called after each piece.
void receiveLarge(Control &control, uint32_t from, Bytes bytes,
                  std::chrono::milliseconds timeout,
                  const std::function<void()> &onPiece = {});

/// Sends or receives one value. `Value` must be trivially copyable.
template <typename Value>
void sendValue(Control &control, uint32_t to, const Value &value,
               std::chrono::milliseconds timeout) {
  static_assert(std::is_trivially_copyable_v<Value>);
  sendLarge(control, to, std::as_bytes(std::span(&value, 1)), timeout);
}
template <typename Value>
Value receiveValue(Control &control, uint32_t from,
                   std::chrono::milliseconds timeout) {
  static_assert(std::is_trivially_copyable_v<Value>);
  Value value{};
  receiveLarge(control, from, std::as_writable_bytes(std::span(&value, 1)),
               timeout);
  return value;
}

/// Returns at `root` the `value` of every rank, in rank order. Returns nothing
/// at other ranks. `Value` must be trivially copyable.
template <typename Value>
std::vector<Value> gatherValues(Control &control, uint32_t root,
                                const Value &value,
                                std::chrono::milliseconds timeout) {
  if (control.rank() != root) {
    sendValue(control, root, value, timeout);
    return {};
  }
  std::vector<Value> values(control.ranks());
  for (uint32_t rank = 0; rank < control.ranks(); ++rank)
    values[rank] =
        rank == root ? value : receiveValue<Value>(control, rank, timeout);
  return values;
}

/// Returns the `value` of `root` at every rank. `Value` must be trivially
/// copyable. The other ranks wait half a second longer than the root waits for
/// its messages: if one of these is missing, the root's error says whose.
template <typename Value>
Value broadcastValue(Control &control, uint32_t root, const Value &value,
                     std::chrono::milliseconds timeout) {
  if (control.rank() != root)
    return receiveValue<Value>(control, root, watcherTimeout(timeout));
  for (uint32_t rank = 0; rank < control.ranks(); ++rank)
    if (rank != root)
      sendValue(control, rank, value, timeout);
  return value;
}

/// A barrier: returns after every rank has called it. `what` is the awaited
/// event in the error message of a timeout.
void barrier(Control &control, std::chrono::milliseconds timeout,
             const char *what);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CONTROL_MESSAGES_H
