//===- Streams.h - FIFOs that threads execute -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ThreadSanitizer takes every mutex for an order, and every count of a
// shared_ptr. So no thread of a stream locks what others lock or shares such a
// pointer with the host: it takes its work from a list, whose ends only a
// Signal connects, and all it reads besides are relaxed atomics.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_CUDA_STREAMS_H
#define CHIMERA_TEST_RUNTIME_CUDA_STREAMS_H

#include "test/runtime/cuda/Signal.h"

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>

namespace chimera::runtime::test {

/// A FIFO and the thread that executes it.
class Stream {
public:
  /// `seed` decides before which operations it waits a little; for 0 it does
  /// not.
  Stream(uint32_t number, int device, uint64_t seed)
      : number(number), device(device), isDelayed(seed != 0),
        random(seed + number) {}
  ~Stream() { delete next; }

  const uint32_t number;
  const int device;

  /// Without work it ends, and nothing may be put after it.
  void put(std::function<void()> work);
  bool isIdle();
  void waitUntilIdle();
  void run();
  bool hasEnded() const { return ended.load(std::memory_order_relaxed); }

private:
  struct Item {
    std::function<void()> work = {};
    Item *next = nullptr;
  };
  void pause();

  std::mutex mutex; ///< of those who put: guards these
  Item *last = new Item;
  uint32_t count = 0;

  // The thread's.
  Item *next = last;
  const bool isDelayed;
  std::minstd_rand random;

  Signal puts, done;
  std::atomic<bool> ended{false};
};

/// Whether it is a stream; no object for the default stream.
bool find(cudaStream_t handle, std::shared_ptr<Stream> &stream);
/// "stream 2"
std::string nameOf(cudaStream_t handle);
/// Of the current one for the default stream, -1 for what is no stream.
int deviceOf(cudaStream_t handle);

/// Puts work on a stream. For the default stream, no object, it is done now.
void put(const std::shared_ptr<Stream> &stream, std::function<void()> work);
/// Work that is not done after a failure: all that uses memory.
std::function<void()> operation(std::function<void()> work);

/// Waits for all that is on streams, of one device or of any.
void waitForStreams(std::optional<int> device = {});

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CUDA_STREAMS_H
