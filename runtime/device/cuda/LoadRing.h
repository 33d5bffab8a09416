//===- LoadRing.h - Pinned memory for loads to the GPU ----------*- C++ -*-===//
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

/// A ring of pinned host memory for loads. A copy from memory that is not
/// pinned would block the host. To allocate pinned memory during communication
/// can block until the communication ends, which may be never. So the ring is
/// allocated before any communication.
class LoadRing {
public:
  explicit LoadRing(Device &device) : device(device) {}

  /// Makes room for `count` loads in flight at a time, of `bytes` bytes
  /// together.
  void expect(uint64_t count, uint64_t bytes);

  /// Memory for one load. If the ring is full, blocks until earlier loads have
  /// ended.
  Bytes allocate(uint64_t bytes);
  /// Keeps the memory of the last `allocate` in use until `event` has passed.
  void releaseAfter(Event event);

private:
  static constexpr uint64_t kAlignment = 64;
  static uint64_t padded(uint64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  struct Load {
    uint64_t begin, end; ///< offsets in the ring
    Event passed;        ///< the point after the copy to the device
  };

  Device &device;
  Block memory;
  uint64_t size = 0;
  std::deque<Load> loads; ///< in flight, oldest first
  uint64_t next = 0;      ///< offset of the next load, if it fits there
};

} // namespace chimera::runtime::cuda

#endif // CHIMERA_RUNTIME_DEVICE_CUDA_LOADRING_H
