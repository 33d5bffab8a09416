//===- Device.h - A GPU that is used through CUDA ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A GPU that is used through CUDA. A queue is a CUDA stream. Events are CUDA
// events from a pool. Loads use a ring of pinned memory. So the only calls that
// block the host are waitFor, readBack, and a load while the ring is full.
//
// A failed operation is reported by a later call. After a failure, or after a
// wait of the host has timed out, every call of the device throws.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DEVICE_CUDA_DEVICE_H
#define CHIMERA_RUNTIME_DEVICE_CUDA_DEVICE_H

#include "runtime/device/Device.h"
#include "runtime/device/cuda/EventPool.h"
#include "runtime/device/cuda/Kernels.h"
#include "runtime/device/cuda/LoadRing.h"
#include "runtime/device/cuda/Progress.h"
#include "runtime/system/Deadline.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <unordered_map>

namespace chimera::runtime::cuda {

struct DeviceOptions {
  /// The number of the GPU, from 0 to deviceCount() - 1.
  int ordinal = 0;
  /// The name of the GPU's user for messages, such as "rank 3".
  std::string user = {};
  /// Whether stages compute on the host, as exact and synthetic stages do. Then
  /// all memory is pinned host memory, which a GPU can access too.
  bool worksOnHost = false;
  /// Called before work, with the stream on which the work must run. The work
  /// runs while the result lives. Some libraries need this to use the right
  /// stream.
  std::function<std::shared_ptr<void>(cudaStream_t)> streamGuard = {};
  /// Puts a function on a stream. If this is set, the device puts the work of
  /// its queues there, so a software GPU runs the work in the order of the
  /// stream. Kernels that the work launches go to the default stream.
  std::function<void(cudaStream_t, std::function<void()>)> enqueue = {};
};

/// The number of GPUs that this process may use. Throws std::runtime_error,
/// with the reason, if CUDA does not work.
int deviceCount();

class CudaDevice final : public Device {
public:
  /// Throws std::invalid_argument if the GPU does not exist, and
  /// std::runtime_error if it cannot be used.
  explicit CudaDevice(DeviceOptions options);
  ~CudaDevice() override;

  bool isSynchronous() const override { return false; }
  Block allocate(uint64_t bytes, uint64_t alignment = kBlockAlignment) override;
  Block allocateHost(uint64_t bytes) override;
  void free(std::byte *memory) noexcept override;
  std::optional<uint64_t> allocatedBytes() override;
  std::optional<Capacity> capacity() override {
    return Capacity{freeAtOpen, ranks};
  }
  std::unique_ptr<Queue> makeQueue(const std::string &name) override;
  bool isDone(Event event) override;
  void waitFor(Event event, std::chrono::milliseconds timeout) override;
  int64_t nanosecondsBetween(const Event &from, const Event &to) override;
  uint64_t blockingWaitCount() const override { return blockingWaits; }
  HostBytes readBack(ConstBytes bytes, Event event,
                     std::chrono::milliseconds timeout) override;

  void setListener(std::optional<Listener> listener) override;
  void setInstruction(uint64_t step, uint32_t instruction) override;

  int ordinal() const { return options.ordinal; }
  /// Sets the number of ranks that use the GPU.
  void setRankCount(uint32_t count) { ranks = count; }
  bool worksOnHost() const { return options.worksOnHost; }
  const Kernels &kernels() const { return ownKernels; }
  /// Makes this GPU the current one of the calling thread.
  void makeCurrent() const;
  /// Records an event at the current end of `stream`, which need not belong to
  /// a queue. `queue` is the queue number of the event (newQueue).
  Event record(cudaStream_t stream, uint32_t queue, bool timed = false);
  /// Makes later operations of the stream wait for the event.
  void wait(cudaStream_t stream, const Event &event);
  /// A new queue number, from 1.
  uint32_t newQueue() { return ++queues; }

  /// Makes every later call throw `failure`; only the first failure is kept.
  /// Any thread may call it.
  void fail(std::exception_ptr failure) noexcept;
  bool failed() const { return hasFailed; }
  void expectNoFailure();

private:
  friend class CudaQueue;
  /// An allocation by CUDA that has not been freed.
  struct Memory {
    std::byte *begin;
    bool isOnHost;
  };
  void freeNow(const Memory &taken) noexcept;
  void call(const Queue::Work &work, cudaStream_t stream) const;

  const DeviceOptions options;
  const Kernels ownKernels;
  EventPool events, timedEvents;
  Block take(uint64_t bytes, uint64_t alignment, bool onHost);

  std::unordered_map<std::byte *, Memory> memory;
  /// Memory and streams that must not be freed before the destructor. After a
  /// failure, operations on the device may wait for ranks that never post their
  /// part, until the channels are destroyed. To free memory or a stream would
  /// wait for these operations.
  std::vector<Memory> keptMemory;
  std::vector<cudaStream_t> keptStreams;
  const uint64_t freeAtOpen; ///< free bytes of the GPU when it was opened
  uint32_t ranks = 1;
  uint32_t queues = 0;
  uint64_t position = 0;
  uint64_t blockingWaits = 0;
  std::atomic<bool> hasFailed{false};
  std::mutex mutex; ///< protects the failure
  std::exception_ptr failure;
  std::mutex working; ///< held while work runs on a stream's thread
  uint64_t step = 0;
  uint32_t instruction = 0;
  std::unique_ptr<Progress> progress;
};

/// A queue of a CudaDevice. The destructor waits for the queue's operations,
/// unless the device has failed. If the destructor runs while an exception
/// propagates, it marks the device as failed.
class CudaQueue final : public Queue {
public:
  /// `isMain`: whether instructions run on this queue. Then its events are
  /// reported to the device's listener.
  explicit CudaQueue(CudaDevice &device, bool isMain = false);
  ~CudaQueue() override;

  using Queue::launch;
  void launch(std::span<const Access> accesses, Work work) override;
  void zero(Bytes bytes) override;
  void copy(ConstBytes from, Bytes to) override;
  void fold(ElementType type, std::vector<ConstBytes> contributions,
            Bytes sum) override;
  void scale(ElementType type, Bytes bytes, double factor) override;
  void reserveForLoads(uint64_t count, uint64_t bytes) override;
  void loadFromHost(Bytes to, const std::function<void(Bytes)> &fill) override;
  void readBack(ConstBytes from, Bytes host) override;
  Event record() override;
  Event recordTime() override;
  void wait(Event event) override;

  cudaStream_t stream() const { return own; }

private:
  void finish() noexcept;

  CudaDevice &device;
  cudaStream_t own = nullptr;
  const uint32_t number;
  const bool isMain;
  LoadRing ring;
};

/// The kernels and the stream of the work that the calling thread executes.
struct LaunchContext {
  const Kernels &kernels;
  cudaStream_t stream;
};
/// Throws std::logic_error if the calling thread executes no work of a queue.
LaunchContext launchContext();

} // namespace chimera::runtime::cuda

#endif // CHIMERA_RUNTIME_DEVICE_CUDA_DEVICE_H
