//===- SharedDevices.cpp - Several ranks on one GPU -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/cuda/SharedDevices.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <unistd.h>

using namespace chimera::runtime;

namespace {
/// The GPU and the process of a rank.
struct Seat {
  std::array<char, 256> host;
  std::array<char, 32> gpu; ///< PCI bus address
  uint64_t process;         ///< unique per process
  uint64_t run;             ///< unique in its process
  int ordinal;

  bool hasHostOf(const Seat &other) const {
    return std::strcmp(host.data(), other.host.data()) == 0;
  }
  bool hasProcessOf(const Seat &other) const {
    return hasHostOf(other) && process == other.process;
  }
  bool hasGpuOf(const Seat &other) const {
    return hasHostOf(other) && std::strcmp(gpu.data(), other.gpu.data()) == 0;
  }
};

/// A random number. The process id is not unique, since several containers may
/// use the same ids.
uint64_t ownProcess() {
  static const uint64_t drawn = [] {
    std::random_device random;
    return (uint64_t(random()) << 32) | random();
  }();
  return drawn;
}

Seat ownSeat(const cuda::CudaDevice &device) {
  static std::atomic<uint64_t> runs{0};
  Seat seat{};
  gethostname(seat.host.data(), seat.host.size() - 1);
  cuda::expect(cudaDeviceGetPCIBusId(seat.gpu.data(),
                                     static_cast<int>(seat.gpu.size()),
                                     device.ordinal()),
               "cudaDeviceGetPCIBusId");
  seat.process = ownProcess();
  seat.run = ++runs;
  seat.ordinal = device.ordinal();
  return seat;
}

/// The seats of all ranks.
std::vector<Seat> tellSeats(const Seat &own, Control &control,
                            std::chrono::milliseconds timeout) {
  const uint32_t self = control.rank();
  for (uint32_t rank = 0; rank < control.ranks(); ++rank)
    if (rank != self)
      control.send(rank, std::as_bytes(std::span(&own, 1)), timeout);
  std::vector<Seat> seats(control.ranks(), own);
  for (uint32_t rank = 0; rank < control.ranks(); ++rank)
    if (rank != self)
      control.receive(rank, std::as_writable_bytes(std::span(&seats[rank], 1)),
                      timeout);
  return seats;
}
} // namespace

Seating chimera::runtime::seatRanks(const cuda::CudaDevice &device,
                                    Control &control,
                                    std::chrono::milliseconds timeout) {
  const uint32_t self = control.rank();
  const std::vector<Seat> seats = tellSeats(ownSeat(device), control, timeout);
  const Seat &own = seats[self];
  const bool isOneProcess = std::ranges::all_of(
      seats, [&](const Seat &seat) { return seat.hasProcessOf(own); });
  const auto ranksOnGpu = static_cast<uint32_t>(std::ranges::count_if(
      seats, [&](const Seat &seat) { return seat.hasGpuOf(own); }));
  bool anyShares = false;
  for (uint32_t first = 0; first < seats.size(); ++first)
    for (uint32_t second = first + 1; second < seats.size(); ++second) {
      if (!seats[first].hasGpuOf(seats[second]))
        continue;
      if (isOneProcess) {
        Seating seating{
            .ranksOnGpu = ranksOnGpu, .isShared = true, .run = seats[0].run};
        for (const Seat &seat : seats)
          seating.gpus.push_back(seat.ordinal);
        return seating;
      }
      if (seats[first].hasProcessOf(seats[second]))
        throw std::invalid_argument(
            "expected one GPU for each rank, because there are several "
            "processes, but ranks " +
            std::to_string(first) + " and " + std::to_string(second) +
            " of one process are on GPU " + seats[first].gpu.data() +
            ": start one process for all ranks (chimera-run alone) or one for "
            "each (torchrun --no-python --nproc-per-node N -- chimera-run …, "
            "or mpirun)");
      anyShares = true;
    }
  if (anyShares && std::ranges::all_of(seats, [&](const Seat &seat) {
        return seat.hasHostOf(own);
      })) {
    // NCCL takes these ranks to be on several hosts, so they communicate over a
    // network. All must use the same one.
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
