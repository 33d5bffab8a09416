//===- SharedDevices.cpp - Several ranks on one GPU -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/cuda/SharedDevices.h"

#include "runtime/system/HostId.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

using namespace chimera::runtime;

namespace {
/// The GPU and the process of a rank.
struct RankGpu {
  std::array<char, 512> host; ///< hostId
  std::array<char, 32> gpu;   ///< PCI bus address
  uint64_t process;           ///< number of the process (ownProcess)
  uint64_t run;               ///< number of the run, unique in its process
  int ordinal;

  bool hasHostOf(const RankGpu &other) const {
    return std::strcmp(host.data(), other.host.data()) == 0;
  }
  bool hasProcessOf(const RankGpu &other) const {
    return hasHostOf(other) && process == other.process;
  }
  bool hasGpuOf(const RankGpu &other) const {
    return hasHostOf(other) && std::strcmp(gpu.data(), other.gpu.data()) == 0;
  }
};

/// A random number that identifies this process. Process ids are not unique,
/// since several containers may use the same ids.
uint64_t ownProcess() {
  static const uint64_t drawn = [] {
    std::random_device random;
    return (uint64_t(random()) << 32) | random();
  }();
  return drawn;
}

RankGpu ownGpu(const cuda::CudaDevice &device) {
  static std::atomic<uint64_t> runs{0};
  RankGpu rankGpu{};
  hostId().copy(rankGpu.host.data(), rankGpu.host.size() - 1);
  cuda::expect(cudaDeviceGetPCIBusId(rankGpu.gpu.data(),
                                     static_cast<int>(rankGpu.gpu.size()),
                                     device.ordinal()),
               "cudaDeviceGetPCIBusId");
  rankGpu.process = ownProcess();
  rankGpu.run = ++runs;
  rankGpu.ordinal = device.ordinal();
  return rankGpu;
}

/// The GPUs of all ranks.
std::vector<RankGpu> exchangeGpus(const RankGpu &own, Control &control,
                                  std::chrono::milliseconds timeout) {
  const uint32_t self = control.rank();
  for (uint32_t rank = 0; rank < control.ranks(); ++rank)
    if (rank != self)
      control.send(rank, std::as_bytes(std::span(&own, 1)), timeout);
  std::vector<RankGpu> rankGpus(control.ranks(), own);
  for (uint32_t rank = 0; rank < control.ranks(); ++rank)
    if (rank != self)
      control.receive(
          rank, std::as_writable_bytes(std::span(&rankGpus[rank], 1)), timeout);
  return rankGpus;
}
} // namespace

GpuAssignment
chimera::runtime::findGpuAssignment(const cuda::CudaDevice &device,
                                    Control &control,
                                    std::chrono::milliseconds timeout) {
  const uint32_t self = control.rank();
  const std::vector<RankGpu> rankGpus =
      exchangeGpus(ownGpu(device), control, timeout);
  const RankGpu &own = rankGpus[self];
  const bool isOneProcess =
      std::ranges::all_of(rankGpus, [&](const RankGpu &rankGpu) {
        return rankGpu.hasProcessOf(own);
      });
  const auto ranksOnGpu = static_cast<uint32_t>(std::ranges::count_if(
      rankGpus, [&](const RankGpu &rankGpu) { return rankGpu.hasGpuOf(own); }));
  bool anyShares = false;
  for (uint32_t first = 0; first < rankGpus.size(); ++first)
    for (uint32_t second = first + 1; second < rankGpus.size(); ++second) {
      if (!rankGpus[first].hasGpuOf(rankGpus[second]))
        continue;
      if (isOneProcess) {
        GpuAssignment assignment{
            .ranksOnGpu = ranksOnGpu, .isShared = true, .run = rankGpus[0].run};
        for (const RankGpu &rankGpu : rankGpus)
          assignment.gpus.push_back(rankGpu.ordinal);
        return assignment;
      }
      if (rankGpus[first].hasProcessOf(rankGpus[second]))
        throw std::invalid_argument(
            "expected one GPU for each rank, because there are several "
            "processes, but ranks " +
            std::to_string(first) + " and " + std::to_string(second) +
            " of one process are on GPU " + rankGpus[first].gpu.data() +
            ": start one process for all ranks (chimera-run alone) or one for "
            "each (torchrun --no-python --nproc-per-node N -- chimera-run …, "
            "or mpirun)");
      anyShares = true;
    }
  if (anyShares && std::ranges::all_of(rankGpus, [&](const RankGpu &rankGpu) {
        return rankGpu.hasHostOf(own);
      })) {
    // All ranks are on one host, but NCCL_HOSTID makes NCCL treat some of them
    // as if they were on other hosts. So NCCL uses a network. All ranks must
    // use the same one: sockets on the loopback interface.
    setenv("NCCL_NET", "Socket", 0);
    setenv("NCCL_SOCKET_IFNAME", "lo", 0);
  }
  if (ranksOnGpu == 1)
    return {};
  const std::string host =
      std::string(own.host.data()) + "/chimera-rank-" + std::to_string(self);
  setenv("NCCL_HOSTID", host.c_str(), 0);
  return {.ranksOnGpu = ranksOnGpu};
}
