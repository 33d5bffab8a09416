//===- PendingOperation.h - An operation of several ranks -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_CUDA_NCCL_PENDINGOPERATION_H
#define CHIMERA_TEST_RUNTIME_CUDA_NCCL_PENDINGOPERATION_H

#include "runtime/device/Fold.h"
#include "test/runtime/cuda/Signal.h"

#include <nccl.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace chimera::runtime::test {

/// The errors of one rank's communicator. Threads of streams refer to it by a
/// plain pointer: ThreadSanitizer would take the count of a shared_ptr as
/// synchronisation (Streams.h).
struct Health {
  std::atomic<bool> isAborted{false};
  std::mutex mutex = {}; ///< guards the members below
  ncclResult_t error = ncclSuccess;
  std::string text = {};

  void fail(ncclResult_t result, const std::string &why) {
    std::lock_guard lock(mutex);
    if (error == ncclSuccess) {
      error = result;
      text = why;
    }
  }
};

/// Waits for a signal. Returns false if, before the signal, the communicator is
/// aborted or the GPUs fail (failure()).
bool waitForSignal(const Signal &signal, const Health &health);

/// A rank's part of an operation.
struct Part {
  const char *name; ///< the NCCL function; "message" for sends and receives
  const std::byte *source;
  std::byte *target;
  size_t count;
  ncclDataType_t type;
  int root;
  Health *health;
};

size_t bytesOf(ncclDataType_t type);
inline size_t bytesOf(const Part &part) {
  return part.count * bytesOf(part.type);
}
/// The element type that an NCCL type names. nullopt if it cannot be summed.
std::optional<ElementType> elementType(ncclDataType_t type);

/// An operation of several ranks: a message or a collective. The first part of
/// a message is the sender's, and the second the receiver's.
class PendingOperation {
public:
  explicit PendingOperation(size_t size) : parts(size) {}

  std::vector<Part> parts; ///< a rank writes its part before the launch
  Signal done;

  /// Called once on the stream of each rank. The last call moves the bytes.
  void arrive();
  /// Cancels the operation. If the last rank has already arrived, waits instead
  /// until the bytes have been moved.
  void cancelOrWait();

private:
  void move();

  std::mutex mutex; ///< guards the members below
  size_t arrived = 0;
  bool isCancelled = false, moves = false;
};

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CUDA_NCCL_PENDINGOPERATION_H
