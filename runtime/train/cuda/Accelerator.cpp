//===- Accelerator.cpp - GPUs over CUDA and NCCL --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/cuda/Accelerator.h"

#include "runtime/channel/nccl/Channels.h"
#include "runtime/stage/cuda/StageKernels.h"
#include "runtime/train/cuda/SharedDevices.h"

using namespace chimera::runtime;

namespace {
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
                            .aroundWork = library.aroundWork});
  }

  std::unique_ptr<Channels>
  makeChannels(Device &device, Control &control, bool ownAllReduce,
               std::chrono::milliseconds timeout) override {
    auto &own = dynamic_cast<cuda::CudaDevice &>(device);
    letRanksShareDevices(own, control, timeout);
    return makeNcclChannels(own, control,
                            {.ownAllReduce = ownAllReduce, .timeout = timeout});
  }

  StageKernels &kernels() override { return cudaStageKernels(); }
  const MemoryMeter &meter() override {
    return library.meter ? *library.meter : none;
  }
  std::shared_ptr<Graphs> makeGraphs() override {
    if (!library.makeGraphs)
      throw std::logic_error("expected stages of tensors for graphs");
    return library.makeGraphs();
  }

private:
  const AcceleratorOptions options;
  const TensorLibrary library;
  const uint32_t count;
  const NoTensors none;
};
} // namespace

std::unique_ptr<Accelerator>
chimera::runtime::makeCudaAccelerator(const AcceleratorOptions &options,
                                      const TensorLibrary &library) {
  return std::make_unique<CudaAccelerator>(options, library);
}
