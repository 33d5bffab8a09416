//===- LastUses.h - When memory was used last -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A device may receive into memory only after its last use, and send what is in
// it only after it was written. Buffers share memory, whole or in part, so this
// is known of each byte, not of each buffer: the arena is cut wherever a buffer
// begins or ends.
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

  /// The queue has used the memory of `buffer` before `event`, which is later
  /// than those before.
  void note(uint32_t buffer, bool writes, const Event &event);

  /// A point behind all uses of any of the memory of `buffer`, or all that
  /// write to it.
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

  std::vector<Cell> cells;   ///< between two cuts of the arena, ascending
  std::vector<Range> ranges; ///< of cells, by buffer; empty for a stash
};

/// The later of two points of one queue.
inline const Event &later(const Event &a, const Event &b) {
  return a.position > b.position ? a : b;
}

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_LASTUSES_H
