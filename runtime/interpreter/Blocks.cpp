//===- Blocks.cpp - The arena, divided into blocks ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/Blocks.h"

#include <algorithm>

using namespace chimera;
using namespace chimera::runtime;

Blocks chimera::runtime::blocksOf(const program::ProgramT &program,
                                  const program::WorkerT &worker) {
  Blocks blocks;
  blocks.locations.resize(worker.buffers.size());
  std::vector<uint32_t> order;
  for (uint32_t b = 0; b < worker.buffers.size(); ++b)
    if (!program::isStash(worker.buffers[b].kind()))
      order.push_back(b);
  std::ranges::stable_sort(
      order, {}, [&](uint32_t b) { return worker.buffers[b].offset(); });
  uint64_t begin = 0, end = 0;
  for (uint32_t b : order) {
    const program::Buffer &buffer = worker.buffers[b];
    if (blocks.bytes.empty() || buffer.offset() >= end) {
      blocks.bytes.push_back(0);
      end = buffer.offset();
      // If the buffer is a piece of a gradient, its offset may be unaligned.
      // The block must begin at an aligned offset, so it begins at the last one
      // before the buffer.
      begin = end - end % program.buffer_alignment;
    }
    end = std::max(end, buffer.offset() + buffer.bytes());
    blocks.bytes.back() = end - begin;
    blocks.locations[b] = {static_cast<uint32_t>(blocks.bytes.size() - 1),
                           buffer.offset() - begin};
  }
  blocks.isUniform.resize(blocks.bytes.size(), true);
  for (uint32_t b : order)
    if (worker.buffers[b].bytes() != blocks.bytes[blocks.locations[b].block])
      blocks.isUniform[blocks.locations[b].block] = false;
  return blocks;
}
