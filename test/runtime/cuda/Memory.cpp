//===- Memory.cpp - Allocations of devices and of the host, and copies ----===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/cuda/Memory.h"
#include "test/runtime/cuda/CudaCall.h"
#include "test/runtime/cuda/Gpu.h"
#include "test/runtime/cuda/SoftwareGpu.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace chimera::runtime;
using namespace chimera::runtime::test;

namespace {
/// The location of a memory range. A range inside one allocation is pinned or
/// on a device. A range that starts outside all allocations is pageable host
/// memory. A range that crosses the end of an allocation is nowhere: it is not
/// valid.
struct Where {
  enum { Pageable, Pinned, OnDevice, Nowhere } kind;
  int device = kHost;
};
Where where(const void *memory, size_t bytes) {
  auto *begin = static_cast<const std::byte *>(memory);
  std::shared_lock lock(gpu().mutex);
  auto after = gpu().memory.upper_bound(begin);
  if (after == gpu().memory.begin())
    return {Where::Pageable};
  auto &[start, allocation] = *std::prev(after);
  auto offset = static_cast<size_t>(begin - start);
  if (offset >= allocation.bytes)
    return {Where::Pageable};
  if (bytes > allocation.bytes - offset)
    return {Where::Nowhere};
  return {allocation.device == kHost ? Where::Pinned : Where::OnDevice,
          allocation.device};
}

cudaError_t allocate(void **memory, size_t bytes, int device) {
  *memory = nullptr;
  if (bytes == 0)
    return cudaSuccess;
  std::unique_lock lock(gpu().mutex);
  if (device != kHost) {
    size_t used = 0;
    for (auto &[begin, allocation] : gpu().memory)
      used += allocation.device == device ? allocation.bytes : 0;
    if (bytes > gpu().memoryBytes - used)
      return cudaErrorMemoryAllocation;
  }
  if (posix_memalign(memory, 512, bytes) != 0)
    return cudaErrorMemoryAllocation;
  std::memset(*memory, 0xA5, bytes);
  gpu().memory[static_cast<std::byte *>(*memory)] = {bytes, device};
  return cudaSuccess;
}

/// Frees memory of the host, or of any device.
cudaError_t release(void *memory, bool onHost) {
  if (!memory)
    return cudaSuccess;
  auto *begin = static_cast<std::byte *>(memory);
  auto find = [&] {
    auto found = gpu().memory.find(begin);
    return found != gpu().memory.end() &&
                   (found->second.device == kHost) == onHost
               ? std::optional(found->second)
               : std::nullopt;
  };
  std::optional<Allocation> allocation;
  {
    std::shared_lock lock(gpu().mutex);
    allocation = find();
  }
  if (!allocation)
    return cudaErrorInvalidValue;
  // Only cudaFree waits for the device. CUDA does not document that
  // cudaFreeHost waits.
  if (!onHost)
    waitForStreams(allocation->device);
  std::unique_lock lock(gpu().mutex);
  if (gpu().memory.erase(begin) == 0)
    return cudaErrorInvalidValue;
  std::memset(memory, 0xDD, allocation->bytes);
  std::free(memory);
  return cudaSuccess;
}

size_t live(bool onHost) {
  std::shared_lock lock(gpu().mutex);
  return static_cast<size_t>(
      std::ranges::count_if(gpu().memory, [&](const auto &allocation) {
        return (allocation.second.device == kHost) == onHost;
      }));
}
} // namespace

bool test::isInReach(int device, const void *memory, size_t bytes) {
  Where at = where(memory, bytes);
  return at.kind == Where::Pinned ||
         (at.kind == Where::OnDevice && at.device == device);
}

size_t test::liveAllocations() { return live(false); }
size_t test::liveHostAllocations() { return live(true); }

extern "C" {

cudaError_t cudaMemGetInfo(size_t *left, size_t *all) {
  return callUnrecorded("cudaMemGetInfo", [&] {
    std::shared_lock lock(gpu().mutex);
    *left = *all = gpu().memoryBytes;
    for (auto &[begin, allocation] : gpu().memory)
      *left -= allocation.device == currentDevice ? allocation.bytes : 0;
    return cudaSuccess;
  });
}
cudaError_t cudaMalloc(void **memory, size_t bytes) {
  return call(
      "cudaMalloc", [&] { return text(bytes); },
      [&] {
        cudaError_t error = deviceError(currentDevice);
        return error ? error : allocate(memory, bytes, currentDevice);
      });
}
cudaError_t cudaFree(void *memory) {
  return callEvenAfterFailure("cudaFree", noDetail,
                              [&] { return release(memory, false); });
}
cudaError_t cudaMallocHost(void **memory, size_t bytes) {
  return call(
      "cudaMallocHost", [&] { return text(bytes); },
      [&] { return allocate(memory, bytes, kHost); });
}
cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned) {
  return call(
      "cudaHostAlloc", [&] { return text(bytes); },
      [&] { return allocate(memory, bytes, kHost); });
}
cudaError_t cudaFreeHost(void *memory) {
  return callEvenAfterFailure("cudaFreeHost", noDetail,
                              [&] { return release(memory, true); });
}

static cudaError_t copy(const char *name, void *to, const void *from,
                        size_t bytes, cudaMemcpyKind kind,
                        cudaStream_t handle) {
  const Where source = where(from, bytes), target = where(to, bytes);
  const bool fromDevice = source.kind == Where::OnDevice;
  const bool toDevice = target.kind == Where::OnDevice;
  // CUDA blocks the host for these copies, including copies within host memory.
  const bool blocks =
      handle && !toDevice && !(fromDevice && target.kind == Where::Pinned);
  return call(
      name,
      [&] {
        return text(bytes, fromDevice ? " D2" : " H2", toDevice ? "D " : "H ",
                    nameOf(handle), blocks ? " blocks" : "");
      },
      [&] {
        std::shared_ptr<Stream> stream;
        if (!find(handle, stream))
          return cudaErrorInvalidResourceHandle;
        const cudaMemcpyKind actual =
            fromDevice
                ? toDevice ? cudaMemcpyDeviceToDevice : cudaMemcpyDeviceToHost
            : toDevice ? cudaMemcpyHostToDevice
                       : cudaMemcpyHostToHost;
        if (source.kind == Where::Nowhere || target.kind == Where::Nowhere ||
            (kind != cudaMemcpyDefault && kind != actual))
          return cudaErrorInvalidValue;
        std::shared_ptr<std::byte[]> staged;
        if (toDevice && source.kind == Where::Pageable) {
          staged.reset(new std::byte[bytes]);
          std::memcpy(staged.get(), from, bytes);
        }
        put(stream, operation([=, staged = std::move(staged)] {
              std::memcpy(to, staged ? staged.get() : from, bytes);
            }));
        if (blocks)
          stream->waitUntilIdle();
        return blocks || !handle ? failure() : cudaSuccess;
      });
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream) {
  return copy("cudaMemcpyAsync", to, from, bytes, kind, stream);
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes,
                       cudaMemcpyKind kind) {
  return copy("cudaMemcpy", to, from, bytes, kind, nullptr);
}
cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes,
                            cudaStream_t handle) {
  return call(
      "cudaMemsetAsync", [&] { return text(bytes, " ", nameOf(handle)); },
      [&] {
        std::shared_ptr<Stream> stream;
        if (!find(handle, stream))
          return cudaErrorInvalidResourceHandle;
        auto kind = where(memory, bytes).kind;
        if (kind == Where::Nowhere || kind == Where::Pageable)
          return cudaErrorInvalidValue;
        put(stream, operation([=] { std::memset(memory, value, bytes); }));
        return cudaSuccess;
      });
}

} // extern "C"
