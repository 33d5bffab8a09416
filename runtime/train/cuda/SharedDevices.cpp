//===- SharedDevices.cpp - Several ranks on one GPU -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/cuda/SharedDevices.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unistd.h>
#include <vector>

using namespace chimera::runtime;

namespace {
/// Where a rank computes.
struct Seat {
  std::array<char, 256> host;
  std::array<char, 32> gpu; ///< its address on the bus
  int64_t process;
};

Seat ownSeat(const cuda::CudaDevice &device) {
  Seat seat{};
  gethostname(seat.host.data(), seat.host.size() - 1);
  cuda::expect(cudaDeviceGetPCIBusId(seat.gpu.data(),
                                     static_cast<int>(seat.gpu.size()),
                                     device.ordinal()),
               "cudaDeviceGetPCIBusId");
  seat.process = getpid();
  return seat;
}

template <typename Text> bool isEqual(const Text &a, const Text &b) {
  return std::strcmp(a.data(), b.data()) == 0;
}
} // namespace

void chimera::runtime::letRanksShareDevices(const cuda::CudaDevice &device,
                                            Control &control,
                                            std::chrono::milliseconds timeout) {
  const uint32_t self = control.rank();
  Seat own = ownSeat(device);
  for (uint32_t rank = 0; rank < control.ranks(); ++rank)
    if (rank != self)
      control.send(rank, std::as_bytes(std::span(&own, 1)), timeout);
  bool shares = false, oneHost = true;
  for (uint32_t rank = 0; rank < control.ranks(); ++rank) {
    if (rank == self)
      continue;
    Seat seat{};
    control.receive(rank, std::as_writable_bytes(std::span(&seat, 1)), timeout);
    if (!isEqual(seat.host, own.host)) {
      oneHost = false;
      continue;
    }
    if (!isEqual(seat.gpu, own.gpu))
      continue;
    shares = true;
    if (seat.process == own.process)
      throw std::invalid_argument(
          "expected a GPU for each rank of a process, got ranks " +
          std::to_string(std::min(rank, self)) + " and " +
          std::to_string(std::max(rank, self)) + " on the GPU " +
          own.gpu.data() +
          ": start a process for each rank (torchrun --no-python "
          "--nproc-per-node N chimera-run …, or mpirun), then ranks may share "
          "one");
  }
  if (!shares)
    return;
  const std::string host =
      std::string(own.host.data()) + "/chimera-rank-" + std::to_string(self);
  setenv("NCCL_HOSTID", host.c_str(), 0);
  if (oneHost)
    setenv("NCCL_SOCKET_IFNAME", "lo", 0);
}
