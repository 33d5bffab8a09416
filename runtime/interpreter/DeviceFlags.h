//===- DeviceFlags.h - Flags that a device sets -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A flag for each of several replicas, in the memory of a device. The device
// sets flags while it executes a step. The host does not wait for that: it
// enqueues a copy of all flags at the end of the step, and reads the copy when
// the step has ended.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_DEVICEFLAGS_H
#define CHIMERA_RUNTIME_INTERPRETER_DEVICEFLAGS_H

#include "runtime/device/Device.h"

#include <map>
#include <utility>
#include <vector>

namespace chimera::runtime {

class DeviceFlags {
public:
  using Key = std::pair<uint32_t, uint32_t>; ///< pipeline and stage

  /// Adds a flag in `block`, which has kFlagBytes. `queue` sets the flag to 0.
  /// Returns its memory.
  Bytes add(const Key &key, Block block, Queue &queue);
  /// The memory of a flag. Empty if `key` has none.
  Bytes of(const Key &key) const;

  /// Reserves host memory for copies of the flags of `steps` steps. Call this
  /// after the last `add`, and before `copy`.
  void reserveCopies(Device &device, size_t steps);
  /// Enqueues a copy of all flags, as those of step `step`. It replaces the
  /// copy of step `step` - `steps`.
  void copy(Queue &queue, uint64_t step);
  /// The flags in the copy of step `step`. Requires that the queue has executed
  /// the copy.
  std::vector<std::pair<Key, int32_t>> valuesIn(uint64_t step) const;

private:
  std::map<Key, Block> flags;
  std::vector<Block> copies; ///< each has all flags, in the order of `flags`
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_DEVICEFLAGS_H
