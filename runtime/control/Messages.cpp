//===- Messages.cpp - Messages of any size --------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/control/Messages.h"

#include "runtime/system/Chunks.h"
#include "runtime/system/Deadline.h"

using namespace chimera::runtime;

static constexpr uint64_t kPiece = uint64_t(16) << 20;

void chimera::runtime::sendLarge(Control &control, uint32_t to,
                                 ConstBytes bytes,
                                 std::chrono::milliseconds timeout) {
  forEachChunk(bytes.size(), kPiece, [&](uint64_t at, uint64_t size) {
    control.send(to, bytes.subspan(at, size), timeout);
  });
}

void chimera::runtime::receiveLarge(Control &control, uint32_t from,
                                    Bytes bytes,
                                    std::chrono::milliseconds timeout,
                                    const std::function<void()> &onPiece) {
  forEachChunk(bytes.size(), kPiece, [&](uint64_t at, uint64_t size) {
    control.receive(from, bytes.subspan(at, size), timeout);
    if (onPiece)
      onPiece();
  });
}

/// A dissemination barrier (Hensgen, Finkel, Manber, IJPP 1988). In round k =
/// 0, 1, …, each rank receives a message from the rank 2^k before it. This
/// message says that its sender and the 2^k - 1 ranks before the sender have
/// called the barrier. There are ceil(log2(ranks)) rounds.
void chimera::runtime::barrier(Control &control,
                               std::chrono::milliseconds timeout,
                               const char *what) try {
  const std::byte word[1] = {};
  std::byte heard[1];
  uint64_t ranks = control.ranks();
  for (uint64_t distance = 1; distance < ranks; distance *= 2) {
    control.send(static_cast<uint32_t>((control.rank() + distance) % ranks),
                 word, timeout);
    control.receive(
        static_cast<uint32_t>((control.rank() + ranks - distance) % ranks),
        heard, timeout);
  }
} catch (const WaitError &error) {
  if (error.reason != WaitError::Reason::TimedOut)
    throw;
  // The error names the purpose of the barrier, which the user knows. The error
  // of a single receive would not help the user.
  throw WaitError(error.reason, timeoutMessage(timeout, what));
}
