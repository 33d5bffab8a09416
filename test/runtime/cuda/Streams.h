//===- Streams.h - Streams: FIFOs that threads execute ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For ThreadSanitizer, a mutex or the reference count of a shared_ptr orders
// all threads that use it. This would hide races between operations of streams.
// So a stream's thread never locks a mutex that other threads lock, and shares
// no shared_ptr with the host. It takes its work from a linked list. Only a
// Signal orders the end where the host appends work and the end where the
// thread takes it. The thread reads all other shared data as relaxed atomics.
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

/// A CUDA stream: a FIFO of work. A thread executes the work (`run`).
class Stream {
public:
  /// `seed` selects the operations before which the stream waits a little; 0
  /// for no waits.
  Stream(uint32_t number, int device, uint64_t seed)
      : number(number), device(device), isDelayed(seed != 0),
        random(seed + number) {}
  ~Stream() { delete next; }

  const uint32_t number;
  const int device;

  /// Appends work to the FIFO. Empty work ends the stream; no work may follow
  /// it.
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

  std::mutex mutex; ///< guards `last` and `count`; `run` does not lock it
  Item *last = new Item;
  uint32_t count = 0;

  // Only the stream's thread uses these three members.
  Item *next = last;
  const bool isDelayed;
  std::minstd_rand random;

  Signal puts, done;
  std::atomic<bool> ended{false};
};

/// Finds the stream of `handle`. Returns false if `handle` is not a stream. For
/// the default stream, returns true and leaves `stream` null.
bool find(cudaStream_t handle, std::shared_ptr<Stream> &stream);
/// The name of a stream in records, for example "stream 2".
std::string nameOf(cudaStream_t handle);
/// The device of a stream. It is the current device for the default stream, and
/// -1 if `handle` is not a stream.
int deviceOf(cudaStream_t handle);

/// Enqueues work on a stream. For the default stream (null), runs it at once.
void put(const std::shared_ptr<Stream> &stream, std::function<void()> work);
/// Returns `work` as a function that does nothing after a failure. All work
/// that uses memory is wrapped in this way.
std::function<void()> operation(std::function<void()> work);

/// Waits until the streams of one device, or of all devices, have executed all
/// their work.
void waitForStreams(std::optional<int> device = {});

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CUDA_STREAMS_H
