//===- Gpu.h - The state of the software GPUs -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_CUDA_GPU_H
#define CHIMERA_TEST_RUNTIME_CUDA_GPU_H

#include "test/runtime/cuda/Streams.h"

#include <cstddef>
#include <deque>
#include <map>
#include <set>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace chimera::runtime::test {

/// A point in a stream, recorded by cudaEventRecord. It is passed when the
/// stream has executed all work that was enqueued before it.
struct Point {
  Signal passed;
  std::chrono::steady_clock::time_point time = {};

  void pass() {
    time = std::chrono::steady_clock::now();
    passed.raise();
  }
};

struct Event {
  const uint32_t number;
  const unsigned flags;
  const int device;
  std::mutex mutex = {}; ///< guards `point`
  Point *point = nullptr;

  Point *now() {
    std::lock_guard lock(mutex);
    return point;
  }
};

constexpr int kHost = -1;
struct Allocation {
  size_t bytes;
  int device; ///< its number, or kHost
};

// Defaults. setDevices (SoftwareGpu.h) changes these values.
constexpr int kDevices = 8;
constexpr size_t kMemoryBytes = size_t{1} << 30;
constexpr int kCapability = 90;

/// The state of all software GPUs.
struct Gpu {
  std::shared_mutex mutex; ///< guards the members below
  int devices = kDevices;
  size_t memoryBytes = kMemoryBytes;
  int capability = kCapability;
  uint64_t seed = 1;
  std::unordered_map<cudaStream_t, std::shared_ptr<Stream>> streams;
  std::vector<std::shared_ptr<Stream>> destroyed; ///< may still be executing
  std::unordered_map<cudaEvent_t, std::shared_ptr<Event>> events;
  std::map<const std::byte *, Allocation> memory; ///< by address
  std::set<std::pair<int, const void *>> loaded;  ///< device and kernel
  /// All recorded points. They stay until resetSoftwareGpu() finds no streams
  /// and events.
  std::deque<Point> points;

  std::atomic<bool> isHeld{false}, sharesDevices{false};
  std::atomic<int> nextFailure{cudaSuccess}, failure{cudaSuccess};
};
Gpu &gpu();

/// The error of an operation that has failed. Nearly all later calls return it.
/// cudaSuccess if none has failed.
cudaError_t failure();
/// Returns cudaSuccess if the device exists, otherwise an error.
cudaError_t deviceError(int device);

// Each thread has its own variables, as in CUDA.
extern constinit thread_local int currentDevice;
extern constinit thread_local cudaError_t lastError;

/// Whether the current thread runs a function that cudaLaunchHostFunc put on a
/// stream.
extern constinit thread_local bool isInHostFunction;

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CUDA_GPU_H
