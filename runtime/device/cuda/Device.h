//===- Device.h - A GPU that CUDA drives ------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A queue is a stream. Events are CUDA's, taken from a pool. What the host
// loads goes through a ring of pinned memory, so that no call blocks the host
// but waitFor and readBack, and a load that finds the ring full.
//
// An operation that fails shows later, in any call: from then on every call of
// the device throws. So it does once a wait of the host has timed out.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DEVICE_CUDA_DEVICE_H
#define CHIMERA_RUNTIME_DEVICE_CUDA_DEVICE_H

#include "runtime/device/Device.h"
#include "runtime/device/cuda/EventPool.h"
#include "runtime/device/cuda/Kernels.h"
#include "runtime/device/cuda/LoadRing.h"
#include "runtime/device/cuda/Progress.h"
#include "runtime/system/WaitError.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <unordered_map>

namespace chimera::runtime::cuda {

struct DeviceOptions {
  /// The number of the GPU, from 0 to deviceCount() - 1.
  int ordinal = 0;
  /// Who computes on it, for messages.
  std::string user = {};
  /// Whether what is launched works on the host, as exact and synthetic stages
  /// do. All memory is then the host's, pinned, where a GPU reaches it too.
  bool worksOnHost = false;
  /// Called before work with the stream to put it on; what it returns is
  /// dropped behind the work. A library may have to be told of the stream.
  std::function<std::shared_ptr<void>(cudaStream_t)> aroundWork = {};
};

/// The GPUs that this process may use. Throws std::runtime_error where CUDA
/// does not work, with the reason.
int deviceCount();

class CudaDevice final : public Device {
public:
  /// Throws std::invalid_argument where there is no such GPU, and
  /// std::runtime_error where it cannot be used.
  explicit CudaDevice(DeviceOptions options);
  ~CudaDevice() override;

  bool executesAtOnce() const override { return false; }
  Block allocate(uint64_t bytes, uint64_t alignment = kBlockAlignment) override;
  Block allocateHost(uint64_t bytes) override;
  void free(std::byte *memory) noexcept override;
  std::optional<uint64_t> takenBytes() override;
  std::optional<Capacity> capacity() override {
    return Capacity{unusedAtFirst, ranks};
  }
  std::unique_ptr<Queue> makeQueue(const std::string &name) override;
  bool isDone(Event event) override;
  void waitFor(Event event, std::chrono::milliseconds timeout) override;
  int64_t nanosecondsBetween(const Event &from, const Event &to) override;
  uint64_t hostBlocks() const override { return blocks; }
  HostBytes readBack(ConstBytes bytes, Event event,
                     std::chrono::milliseconds timeout) override;

  void listen(std::optional<Listener> listener) override;
  void enter(uint64_t step, uint32_t instruction) override;

  int ordinal() const { return options.ordinal; }
  /// So many ranks use the GPU.
  void share(uint32_t among) { ranks = among; }
  bool worksOnHost() const { return options.worksOnHost; }
  const Kernels &kernels() const { return ownKernels; }
  /// Makes this GPU current on the calling thread.
  void use() const;
  /// A point of a stream of this device, whoever made the stream.
  Event record(cudaStream_t stream, uint32_t queue, bool timed = false);
  /// Has later operations of the stream wait for the event.
  void wait(cudaStream_t stream, const Event &event);
  /// A number for a queue, from 1.
  uint32_t newQueue() { return ++queues; }

  /// Makes every later call throw `failure`; the first one counts. Any thread
  /// may call it.
  void fail(std::exception_ptr failure) noexcept;
  bool failed() const { return hasFailed; }
  void expectNoFailure();

private:
  friend class CudaQueue;
  /// What CUDA gave for memory that somebody has.
  struct Memory {
    std::byte *begin;
    bool isOnHost;
  };
  void freeNow(const Memory &taken) noexcept;

  const DeviceOptions options;
  const Kernels ownKernels;
  EventPool events, timedEvents;
  Block take(uint64_t bytes, uint64_t alignment, bool onHost);

  std::unordered_map<std::byte *, Memory> memory;
  /// Where the device has failed, or an exception is under way, what is on it
  /// may wait for ranks that do not come, until their channels have ended: this
  /// is kept until then.
  std::vector<Memory> keptMemory;
  std::vector<cudaStream_t> keptStreams;
  const uint64_t unusedAtFirst; ///< bytes, by whomever
  uint32_t ranks = 1;
  uint32_t queues = 0;
  uint64_t position = 0;
  uint64_t blocks = 0;
  std::atomic<bool> hasFailed{false};
  std::mutex mutex; ///< guards the failure
  std::exception_ptr failure;
  std::mutex working; ///< held while work runs on the host
  uint64_t step = 0;
  uint32_t instruction = 0;
  std::unique_ptr<Progress> progress;
};

/// A queue of a CudaDevice. To end it waits for what is on it, unless the
/// device has failed or an exception is under way, which is such a failure.
class CudaQueue final : public Queue {
public:
  /// `isMain`: on which instructions work, for who listens to the device.
  explicit CudaQueue(CudaDevice &device, bool isMain = false);
  ~CudaQueue() override;

  using Queue::launch;
  void launch(std::span<const Access> accesses, Work work) override;
  void zero(Bytes bytes) override;
  void copy(ConstBytes from, Bytes to) override;
  void fold(ElementType type, std::vector<ConstBytes> contributions,
            Bytes sum) override;
  void scale(ElementType type, Bytes bytes, double factor) override;
  void expectLoads(uint64_t count, uint64_t bytes) override;
  void load(Bytes to, const std::function<void(Bytes)> &fill) override;
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

/// Where the work that the calling thread is called for belongs.
struct Working {
  const Kernels &kernels;
  cudaStream_t stream;
};
/// Throws std::logic_error where no queue is calling work.
Working working();

} // namespace chimera::runtime::cuda

#endif // CHIMERA_RUNTIME_DEVICE_CUDA_DEVICE_H
