//===- Accelerator.cpp - GPUs with CUDA and NCCL --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/cuda/Accelerator.h"

#include "runtime/channel/cuda/Copies.h"
#include "runtime/channel/nccl/Channels.h"
#include "runtime/model/cuda/StageKernels.h"
#include "runtime/train/cuda/SharedDevices.h"

#include <cstdlib>
#include <map>
#include <mutex>

using namespace chimera::runtime;

namespace {
/// Sets variables that CUDA and NCCL read when they start, unless they are
/// already set.
void setEnvironment(const AcceleratorOptions &options) {
  // Streams beyond this number share hardware queues. A stream that waits for
  // another rank could then block an operation that the other rank waits for.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  // Make NCCL connect when communicators are made. Otherwise its own
  // all-reduces would connect in the first step.
  if (options.transportAllReduce)
    setenv("NCCL_RUNTIME_CONNECT", "0", 0);
}

class NoTensors final : public MemoryMeter {
public:
  int64_t currentBytes() const override { return 0; }
};

class CudaAccelerator final : public Accelerator {
public:
  CudaAccelerator(const AcceleratorOptions &options, TensorLibrary library)
      : options(options), library(std::move(library)),
        count(static_cast<uint32_t>(cuda::deviceCount())) {}

  uint32_t devices() const override { return count; }

  std::unique_ptr<Device> makeDevice(uint32_t number, uint32_t rank) override {
    return std::make_unique<cuda::CudaDevice>(
        cuda::DeviceOptions{.ordinal = static_cast<int>(number),
                            .user = "rank " + std::to_string(rank),
                            .worksOnHost = options.stagesOnHost,
                            .streamGuard = library.streamGuard,
                            .enqueue = library.enqueue});
  }

  std::unique_ptr<Channels>
  makeChannels(Device &device, Control &control,
               std::chrono::milliseconds timeout) override {
    auto &own = dynamic_cast<cuda::CudaDevice &>(device);
    GpuAssignment assignment = findGpuAssignment(own, control, timeout);
    own.setRankCount(assignment.ranksOnGpu);
    if (assignment.isShared)
      return makeCopyChannels(hubOf(assignment.run, control.ranks()),
                              control.rank(), own,
                              {.gpus = std::move(assignment.gpus)});
    return makeNcclChannels(
        own, control,
        {.transportAllReduce = options.transportAllReduce, .timeout = timeout});
  }

  DevicePlacement placement() override {
    return {.isCuda = library.hasCudaTensors, .kernels = &cudaStageKernels()};
  }
  const MemoryMeter &meter() override {
    return library.meter ? *library.meter : none;
  }
  std::shared_ptr<GraphFactory> makeGraphFactory() override {
    if (!library.makeGraphFactory)
      throw std::runtime_error("these devices capture no graphs: leave out "
                               "--cuda-graphs");
    return library.makeGraphFactory();
  }

private:
  /// The hub that the ranks of a run share.
  std::shared_ptr<local::Hub> hubOf(uint64_t run, uint32_t ranks) {
    std::lock_guard lock(mutex);
    std::erase_if(hubs, [](const auto &each) { return each.second.expired(); });
    std::shared_ptr<local::Hub> hub = hubs[run].lock();
    if (!hub)
      hubs[run] = hub = std::make_shared<local::Hub>(ranks);
    return hub;
  }

  const AcceleratorOptions options;
  const TensorLibrary library;
  const uint32_t count;
  const NoTensors none;
  std::mutex mutex;                                   ///< for hubs
  std::map<uint64_t, std::weak_ptr<local::Hub>> hubs; ///< by run
};
} // namespace

std::unique_ptr<Accelerator>
chimera::runtime::makeCudaAccelerator(const AcceleratorOptions &options,
                                      const TensorLibrary &library) {
  setEnvironment(options);
  return std::make_unique<CudaAccelerator>(options, library);
}
