//===- Capacity.cpp - What a host can run ---------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Capacity.h"

#include "runtime/core/HandOver.h"

#include <cstdio>
#include <sys/sysinfo.h>
#include <vector>

using namespace chimera;

uint64_t chimera::runtime::hostMemory() {
  struct sysinfo info;
  if (sysinfo(&info) != 0)
    return UINT64_MAX;
  return (uint64_t(info.totalram) + info.totalswap) * info.mem_unit;
}

static std::string gigabytes(double bytes) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.1f GiB", bytes / double(1 << 30));
  return text;
}

std::string chimera::runtime::faultOfCapacity(const program::ProgramT &program,
                                              std::span<const uint32_t> ranks,
                                              uint64_t memory) {
  // What a worker allocates, which is its arena without the gaps.
  std::vector<double> ofWorker;
  for (const auto &worker : program.workers) {
    double &sum = ofWorker.emplace_back(0);
    for (uint64_t block : blocksOf(*worker).bytes)
      sum += static_cast<double>(block);
  }
  double bytes = 0;
  for (uint32_t rank : ranks)
    bytes += ofWorker[rank % ofWorker.size()];
  if (bytes <= static_cast<double>(memory))
    return "";
  return "expected arenas that fit into the " +
         gigabytes(static_cast<double>(memory)) +
         " of memory and swap space of this host, got " + gigabytes(bytes) +
         " for " + program::counted(ranks.size(), "rank") +
         ": use more hosts, more stages or smaller micro-batches";
}
