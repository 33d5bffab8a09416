//===- LastUses.cpp - The last uses of memory -----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/LastUses.h"

#include <algorithm>

using namespace chimera;
using namespace chimera::runtime;

LastUses::LastUses(const program::WorkerT &worker) {
  auto isInArena = [](const program::Buffer &buffer) {
    return !program::isStash(buffer.kind());
  };
  std::vector<uint64_t> cuts;
  for (const program::Buffer &buffer : worker.buffers)
    if (isInArena(buffer)) {
      cuts.push_back(buffer.offset());
      cuts.push_back(buffer.offset() + buffer.bytes());
    }
  std::ranges::sort(cuts);
  const auto repeated = std::ranges::unique(cuts);
  cuts.erase(repeated.begin(), repeated.end());
  cells.resize(cuts.size());
  auto cellAt = [&](uint64_t offset) {
    return static_cast<uint32_t>(std::ranges::lower_bound(cuts, offset) -
                                 cuts.begin());
  };
  for (const program::Buffer &buffer : worker.buffers)
    ranges.push_back(isInArena(buffer)
                         ? Range{cellAt(buffer.offset()),
                                 cellAt(buffer.offset() + buffer.bytes())}
                         : Range{0, 0});
}

void LastUses::recordUse(uint32_t buffer, bool writes, const Event &event) {
  Range range = ranges[buffer];
  for (uint32_t cell = range.begin; cell < range.end; ++cell) {
    cells[cell].used = event;
    if (writes)
      cells[cell].written = event;
  }
}

template <typename Member>
Event LastUses::latest(uint32_t buffer, Member which) const {
  static const Event never;
  const Event *last = &never;
  Range range = ranges[buffer];
  for (uint32_t cell = range.begin; cell < range.end; ++cell)
    last = &laterEvent(*last, cells[cell].*which);
  return *last;
}

Event LastUses::lastUse(uint32_t buffer) const {
  return latest(buffer, &Cell::used);
}
Event LastUses::lastWrite(uint32_t buffer) const {
  return latest(buffer, &Cell::written);
}
