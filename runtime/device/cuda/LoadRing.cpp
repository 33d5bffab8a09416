//===- LoadRing.cpp - Pinned memory for loads to the GPU ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/LoadRing.h"

#include "runtime/system/Deadline.h"

using namespace chimera::runtime;
using namespace chimera::runtime::cuda;

void LoadRing::expect(uint64_t count, uint64_t bytes) {
  uint64_t wanted = padded(bytes) + count * kAlignment;
  if (wanted <= size)
    return;
  while (!loads.empty()) {
    device.waitFor(loads.front().passed, kForever);
    loads.pop_front();
  }
  memory = nullptr;
  size = 0;
  memory = device.allocateHost(wanted);
  size = wanted;
  next = 0;
}

Bytes LoadRing::allocate(uint64_t bytes) {
  const uint64_t wanted = padded(bytes);
  if (wanted > size)
    expect(1, bytes);
  for (;;) {
    while (!loads.empty() && device.isDone(loads.front().passed))
      loads.pop_front();
    if (loads.empty())
      next = 0;
    // The range from the oldest load to `next` is in use; the rest is free.
    const bool wraps = !loads.empty() && next <= loads.front().begin;
    const uint64_t limit = wraps ? loads.front().begin : size;
    if (next + wanted > limit && !wraps && !loads.empty() &&
        wanted <= loads.front().begin)
      next = 0;
    else if (next + wanted > limit) {
      device.waitFor(loads.front().passed, kForever);
      continue;
    }
    loads.push_back({next, next + wanted, {}});
    next += wanted;
    return {memory.get() + loads.back().begin, bytes};
  }
}

void LoadRing::releaseAfter(Event event) {
  loads.back().passed = std::move(event);
}
