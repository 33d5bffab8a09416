//===- LoadRing.h - Pinned memory on its way to the GPU ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DEVICE_CUDA_LOADRING_H
#define CHIMERA_RUNTIME_DEVICE_CUDA_LOADRING_H

#include "runtime/device/Device.h"

#include <deque>

namespace chimera::runtime::cuda {

/// A copy from memory that is not pinned would block the host. And to take
/// pinned memory while others communicate may block it until they end, which
/// may be never: so it is taken before.
class LoadRing {
public:
  explicit LoadRing(Device &device) : device(device) {}

  /// Makes room for so many loads at a time, of so many bytes together.
  void expect(uint64_t count, uint64_t bytes);

  /// Memory for a load. Where others fill the ring it blocks until they have
  /// passed.
  Bytes take(uint64_t bytes);
  /// What was taken last is used until `event`.
  void give(Event event);

private:
  static constexpr uint64_t kAlignment = 64;
  static uint64_t padded(uint64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  struct Load {
    uint64_t begin, end; ///< in the ring
    Event passed;
  };

  Device &device;
  Block memory;
  uint64_t size = 0;
  std::deque<Load> loads; ///< under way, oldest first
  uint64_t next = 0;      ///< where the next one begins, if it fits
};

} // namespace chimera::runtime::cuda

#endif // CHIMERA_RUNTIME_DEVICE_CUDA_LOADRING_H
