//===- Tensors.cpp - LibTorch's threads and memory ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/tensors/Tensors.h"

#include "runtime/model/tensors/BlockCache.h"
#include "runtime/system/ParallelFor.h"

#include <ATen/Parallel.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include <atomic>
#include <cstring>
#include <list>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>

namespace chimera::runtime {
namespace {

using Counter = std::atomic<int64_t>;

// Counters outlive their threads, because another thread may free a tensor
// later. For the same reason the list is never destroyed.
Counter &counterOfThisThread() {
  static std::mutex mutex;
  static auto *counters = new std::list<Counter>;
  thread_local Counter *mine = [] {
    std::lock_guard lock(mutex);
    return &counters->emplace_back(0);
  }();
  return *mine;
}

thread_local uint64_t mostBytesOfTensor = UINT64_MAX;

// A header in front of the bytes of a tensor. It has the counter to which the
// number of bytes was added. The header is as large as the alignment that
// LibTorch's kernels expect, so the bytes are aligned too.
struct alignas(64) TensorHeader {
  Counter *counter;
  size_t bytes;
};
static_assert(sizeof(TensorHeader) == c10::gAlignment);

class CountingAllocator final : public c10::Allocator {
public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device device(c10::DeviceType::CPU);
    if (bytes == 0)
      return {nullptr, nullptr, &release, device};
    if (bytes > mostBytesOfTensor)
      throw std::runtime_error("expected tensors of at most " +
                               std::to_string(mostBytesOfTensor) +
                               " bytes, the limit from the sizes that the "
                               "program states, got one of " +
                               std::to_string(bytes));
    TensorHeader *header =
        new (take(sizeof(TensorHeader) + bytes)) TensorHeader{nullptr, bytes};
    header->counter = &counterOfThisThread();
    header->counter->fetch_add(static_cast<int64_t>(bytes),
                               std::memory_order_relaxed);
    void *data = header + 1;
    return {data, data, &release, device};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release; }

  void copy_data(void *to, const void *from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }

private:
  static void release(void *data) {
    if (!data)
      return;
    TensorHeader *header = static_cast<TensorHeader *>(data) - 1;
    header->counter->fetch_sub(static_cast<int64_t>(header->bytes),
                               std::memory_order_relaxed);
    const size_t taken = sizeof(TensorHeader) + header->bytes;
    if (taken < BlockCache::kSmallest)
      c10::free_cpu(header);
    else
      large().free(header, taken);
  }

  static void *take(size_t bytes) {
    return bytes < BlockCache::kSmallest ? c10::alloc_cpu(bytes)
                                         : large().take(bytes);
  }

  // Never destroyed, since tensors may outlive all other objects.
  static BlockCache &large() {
    static auto *memory = new BlockCache;
    return *memory;
  }
};

void runOnTheseThreads(int64_t count, int64_t grain,
                       const RangeFunction &work) {
  at::parallel_for(0, count, grain, work);
}

} // namespace

void setThreads(int threads) {
  // On a thread's first computation, LibTorch copies the process-wide number of
  // threads, which would override ours. This call makes LibTorch copy it now.
  at::get_num_threads();
  at::set_num_threads(threads < 1 ? 1 : threads);
  setParallelFor(threads > 1 ? runOnTheseThreads : nullptr);
}

void countTensorBytes() {
  static std::once_flag once;
  std::call_once(once, [] {
    // LibTorch never frees the allocator, so it exists until the process ends.
    c10::SetCPUAllocator(new CountingAllocator, /*priority=*/100);
  });
}

TensorLimit::TensorLimit(uint64_t mostBytes) : before(mostBytesOfTensor) {
  mostBytesOfTensor = mostBytes;
}

TensorLimit::~TensorLimit() { mostBytesOfTensor = before; }

int64_t liveTensorBytes() {
  return counterOfThisThread().load(std::memory_order_relaxed);
}

} // namespace chimera::runtime
