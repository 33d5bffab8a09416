//===- LastUses.h - The last uses of memory ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The last use of each part of a worker's arena by a queue of the device. A
// device may receive into memory only after the last use of this memory. It may
// send the contents of memory only after they were written. Buffers can share
// memory, completely or partly. So uses are recorded for cells and not for
// buffers. The arena is cut at the beginning and the end of every buffer. A
// cell is the memory between two neighbouring cuts.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_LASTUSES_H
#define CHIMERA_RUNTIME_INTERPRETER_LASTUSES_H

#include "runtime/device/Device.h"
#include "runtime/program/Program.h"

#include <vector>

namespace chimera::runtime {

/// The last uses of a worker's arena by one queue.
class LastUses {
public:
  explicit LastUses(const program::WorkerT &worker);

  /// Records that the queue uses the memory of `buffer` before `event`.
  /// Requires that `event` is later in the queue than the events of earlier
  /// calls.
  void recordUse(uint32_t buffer, bool writes, const Event &event);

  /// The point of the queue after the last use of any memory of `buffer`, and
  /// the point after the last write to any memory of `buffer`.
  Event lastUse(uint32_t buffer) const;
  Event lastWrite(uint32_t buffer) const;

private:
  struct Cell {
    Event used, written;
  };
  struct Range {
    uint32_t begin, end;
  };
  template <typename Member> Event latest(uint32_t buffer, Member which) const;

  std::vector<Cell> cells;   ///< ascending by address
  std::vector<Range> ranges; ///< by buffer: its cells; empty for a stash
};

/// The later of two points of one queue.
inline const Event &laterEvent(const Event &a, const Event &b) {
  return a.position > b.position ? a : b;
}

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_LASTUSES_H
