//===- SoftwareGpu.cpp - Settings and queries for tests -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/cuda/SoftwareGpu.h"
#include "test/runtime/cuda/Calls.h"
#include "test/runtime/cuda/Gpu.h"

#include <mutex>
#include <thread>

using namespace chimera::runtime;
using namespace chimera::runtime::test;

Gpu &test::gpu() {
  static Gpu *all = new Gpu; // leaked, because threads may outlive main
  return *all;
}

constinit thread_local int test::currentDevice = 0;
constinit thread_local cudaError_t test::lastError = cudaSuccess;
constinit thread_local bool test::isInHostFunction = false;

cudaError_t test::failure() {
  return static_cast<cudaError_t>(
      gpu().failure.load(std::memory_order_relaxed));
}

cudaError_t test::deviceError(int device) {
  std::shared_lock lock(gpu().mutex);
  return gpu().devices == 0                      ? cudaErrorNoDevice
         : device < 0 || device >= gpu().devices ? cudaErrorInvalidDevice
                                                 : cudaSuccess;
}

void test::resetSoftwareGpu() {
  holdStreams(false);
  if (failure())
    waitForStreams();
  for (;;) {
    std::unique_lock lock(gpu().mutex);
    std::erase_if(gpu().destroyed, [](auto &old) { return old->hasEnded(); });
    if (gpu().destroyed.empty()) {
      if (gpu().streams.empty() && gpu().events.empty())
        gpu().points.clear();
      break;
    }
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  setDevices(kDevices, kMemoryBytes);
  {
    std::unique_lock lock(gpu().mutex);
    gpu().loaded.clear();
  }
  allowSharedDevices(false);
  setDelays(1);
  forgetCalls();
  gpu().nextFailure = gpu().failure = cudaSuccess;
  lastError = cudaSuccess;
  currentDevice = 0;
}

void test::setDevices(int count, size_t memoryBytes, int capability) {
  std::unique_lock lock(gpu().mutex);
  gpu().devices = count;
  gpu().memoryBytes = memoryBytes;
  gpu().capability = capability;
}

void test::allowSharedDevices(bool allow) { gpu().sharesDevices = allow; }

void test::setDelays(uint64_t seed) {
  std::unique_lock lock(gpu().mutex);
  gpu().seed = seed;
}

void test::failExecution(cudaError_t error) { gpu().nextFailure = error; }

void test::holdStreams(bool held) {
  gpu().isHeld.store(held, std::memory_order_release);
}
