//===- PendingOperation.cpp - An operation of several ranks ---------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/cuda/nccl/PendingOperation.h"
#include "test/runtime/cuda/Calls.h"
#include "test/runtime/cuda/Gpu.h"

#include <cstring>

using namespace chimera::runtime;
using namespace chimera::runtime::test;

bool test::waitForSignal(const Signal &signal, const Health &health) {
  while (!signal.waitFor(std::chrono::milliseconds(2)))
    if (health.isAborted.load(std::memory_order_relaxed) || failure())
      return false;
  return true;
}

size_t test::bytesOf(ncclDataType_t type) {
  constexpr size_t kBytes[ncclNumTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return kBytes[type];
}

std::optional<ElementType> test::elementType(ncclDataType_t type) {
  return type == ncclFloat32    ? std::optional(ElementType::Float32)
         : type == ncclFloat64  ? std::optional(ElementType::Float64)
         : type == ncclBfloat16 ? std::optional(ElementType::BFloat16)
         : type == ncclUint64   ? std::optional(ElementType::UInt64)
                                : std::nullopt;
}

void PendingOperation::arrive() {
  {
    std::lock_guard lock(mutex);
    if (++arrived < parts.size() || isCancelled)
      return;
    moves = true;
  }
  move();
  done.raise();
}

void PendingOperation::cancelOrWait() {
  {
    std::lock_guard lock(mutex);
    if (!moves) {
      isCancelled = true;
      return;
    }
  }
  done.wait();
}

static void copyBytes(const std::byte *from, std::byte *to, size_t bytes) {
  if (from != to && bytes > 0)
    std::memcpy(to, from, bytes);
}

void PendingOperation::move() {
  const Part &first = parts.front();
  const size_t bytes = bytesOf(first);
  const std::string name = first.name;
  for (const Part &part : parts)
    if (part.name != name || bytesOf(part) != bytes ||
        part.root != first.root) {
      for (const Part &each : parts)
        each.health->fail(ncclInvalidUsage,
                          text("ranks disagree: ", first.name, " of ", bytes,
                               " bytes and ", part.name, " of ", bytesOf(part),
                               " bytes"));
      return;
    }
  if (name == "message") {
    copyBytes(first.source, parts[1].target, bytes);
  } else if (name == "ncclBroadcast") {
    for (const Part &part : parts)
      copyBytes(parts[static_cast<size_t>(first.root)].source, part.target,
                bytes);
  } else if (name == "ncclAllGather") {
    for (const Part &part : parts)
      for (size_t rank = 0; rank < parts.size(); ++rank)
        copyBytes(parts[rank].source, part.target + rank * bytes, bytes);
  } else {
    std::vector<const std::byte *> contributions;
    for (const Part &part : parts)
      contributions.push_back(part.source);
    std::vector<std::byte> sum(bytes);
    fold(*elementType(first.type), contributions, sum.data(), bytes);
    for (const Part &part : parts)
      copyBytes(sum.data(), part.target, bytes);
  }
}
