//===- Streams.h - Streams: FIFOs that threads execute ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ThreadSanitizer takes every mutex, and every count of a shared_ptr, as
// synchronisation. So a stream's thread never locks a mutex that others lock,
// and shares no such pointer with the host. It takes its work from a list whose
// two ends only a Signal connects; it reads everything else as relaxed atomics.
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
  /// `seed` selects the operations before which it waits a little; 0 for no
  /// waits.
  Stream(uint32_t number, int device, uint64_t seed)
      : number(number), device(device), isDelayed(seed != 0),
        random(seed + number) {}
  ~Stream() { delete next; }

  const uint32_t number;
  const int device;

  /// Empty work ends the stream. Nothing may be put after it.
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

  std::mutex mutex; ///< of the threads that put work: guards the members below
  Item *last = new Item;
  uint32_t count = 0;

  // Only the stream's thread uses these.
  Item *next = last;
  const bool isDelayed;
  std::minstd_rand random;

  Signal puts, done;
  std::atomic<bool> ended{false};
};

/// Whether `handle` is a stream. `stream` is null for the default stream.
bool find(cudaStream_t handle, std::shared_ptr<Stream> &stream);
/// The name in records: "stream 2".
std::string nameOf(cudaStream_t handle);
/// The device of a stream. For the default stream the current device, -1 if it
/// is not a stream.
int deviceOf(cudaStream_t handle);

/// Puts work on a stream. For the default stream (null), runs it now.
void put(const std::shared_ptr<Stream> &stream, std::function<void()> work);
/// Work that is skipped after a failure: everything that uses memory.
std::function<void()> operation(std::function<void()> work);

/// Waits for everything on the streams of one device, or of all.
void waitForStreams(std::optional<int> device = {});

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CUDA_STREAMS_H
