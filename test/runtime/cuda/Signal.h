//===- Signal.h - A counter for which threads can wait ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_CUDA_SIGNAL_H
#define CHIMERA_TEST_RUNTIME_CUDA_SIGNAL_H

#include <atomic>
#include <chrono>
#include <cstdint>

namespace chimera::runtime::test {

/// A counter that only increases, and for which threads can wait. A thread that
/// finds that the counter has reached a value sees all writes of the threads
/// that raised it. A thread that raises the counter does not see the writes of
/// other threads. This is the difference from a mutex.
class Signal {
public:
  void raise();
  bool reached(uint32_t wanted = 1) const;
  void wait(uint32_t wanted = 1) const;
  /// Waits until the counter is at least `wanted`, but not longer than about
  /// `time`. Returns whether it is.
  bool waitFor(std::chrono::microseconds time, uint32_t wanted = 1) const;

private:
  void sleep(uint32_t seen, const std::chrono::microseconds *time) const;

  std::atomic<uint32_t> count{0};
};

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CUDA_SIGNAL_H
