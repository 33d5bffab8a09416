//===- Capacity.cpp - Limits of a host's memory ---------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Capacity.h"

#include "runtime/interpreter/ZeroCopy.h"
#include "runtime/program/Layers.h"
#include "runtime/system/ControlGroups.h"
#include "runtime/train/CheckpointedSteps.h"

#include <algorithm>
#include <cstdio>
#include <sys/sysinfo.h>
#include <vector>

using namespace chimera;

uint64_t chimera::runtime::hostMemory(const std::string &root) {
  struct sysinfo info;
  if (sysinfo(&info) != 0)
    return UINT64_MAX;
  uint64_t swap = uint64_t(info.totalswap) * info.mem_unit;
  uint64_t least = uint64_t(info.totalram) * info.mem_unit + swap;
  auto allow = [&](double bytes) {
    if (bytes < static_cast<double>(least))
      least = static_cast<uint64_t>(bytes);
  };
  // A control group has no limit if the limit's file contains "max" or does not
  // exist.
  for (const ControlGroup &group : findControlGroups("memory", root)) {
    bool isOne = group.version == ControlGroup::Version::One;
    std::optional<double> memory = readNumber(
        group.folder / (isOne ? "memory.limit_in_bytes" : "memory.max"));
    // Version 1 of control groups limits the sum of memory and swap space.
    // Version 2 limits swap space separately.
    std::optional<double> more =
        readNumber(group.folder /
                   (isOne ? "memory.memsw.limit_in_bytes" : "memory.swap.max"));
    auto ownSwap = static_cast<double>(swap);
    if (more && isOne)
      allow(*more);
    else if (more)
      ownSwap = std::min(ownSwap, *more);
    if (memory)
      allow(*memory + ownSwap);
  }
  return least;
}

static std::string gigabytes(double bytes) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.1f GiB", bytes / double(1 << 30));
  return text;
}

/// An error message if `bytes` of `what` do not fit into `memory`, else an
/// empty string.
static std::string faultOf(const char *what, double bytes, uint64_t memory,
                           const std::string &whoseAndAdvice) {
  auto available = static_cast<double>(memory);
  if (bytes <= available)
    return "";
  return std::string("expected ") + what + " that fit into the " +
         gigabytes(available) + " of memory and swap space of this host, got " +
         gigabytes(bytes) + whoseAndAdvice;
}

std::string chimera::runtime::capacityError(const program::ProgramT &program,
                                            std::span<const uint32_t> ranks,
                                            uint64_t memory,
                                            bool hasCheckpoints,
                                            std::span<const uint64_t> readAhead,
                                            bool onAccelerators) {
  // A worker's arena has no gaps, so its size is the sum of its blocks.
  std::vector<double> ofWorker;
  for (const auto &worker : program.workers) {
    double &sum = ofWorker.emplace_back(0);
    for (uint64_t block : blocksOf(program, *worker).bytes)
      sum += static_cast<double>(block);
  }
  double bytes = 0, samples = 0;
  for (uint32_t rank : ranks) {
    if (!onAccelerators)
      bytes += ofWorker[rank % ofWorker.size()];
    if (hasCheckpoints)
      bytes += static_cast<double>(checkpointCopyBytes(program, rank));
    if (!readAhead.empty())
      samples += static_cast<double>(readAhead[rank % ofWorker.size()]);
  }
  const std::string what = onAccelerators ? "copies for --checkpoint"
                           : hasCheckpoints
                               ? "arenas and copies for --checkpoint"
                               : "arenas";
  const std::string whose =
      " for " + program::countWithNoun(ranks.size(), "rank") +
      ": use more hosts, more stages or smaller micro-batches";
  if (std::string fault = faultOf(what.c_str(), bytes, memory, whose);
      !fault.empty())
    return fault;
  return faultOf((what + " and samples that are read ahead").c_str(),
                 bytes + samples, memory, whose + ", or --read-ahead 0");
}

std::string
chimera::runtime::faultOfSequentialCapacity(const program::ProgramT &program,
                                            size_t stages, uint64_t memory,
                                            bool hasCheckpoints) {
  double bytes = 0;
  for (size_t s = 0; s < program.stages.size(); ++s) {
    const program::Stage &stage = program.stages[s];
    // Count the minimum of sequential training: weights, gradients and
    // optimizer state, a copy for checkpoints, and one activation and its
    // gradient between each pair of neighbouring stages.
    bytes += static_cast<double>(stage.weights_bytes()) +
             static_cast<double>(program::gradientBytes(stage)) +
             static_cast<double>(stage.optimizer_bytes());
    if (hasCheckpoints)
      bytes += static_cast<double>(program::gradientBytes(stage)) +
               static_cast<double>(stage.optimizer_bytes());
    if (s + 1 < stages)
      bytes += 2 * static_cast<double>(stage.boundary_bytes());
  }
  // Count the losses of all micro-batches in a step too.
  bytes += static_cast<double>(program::kLossBytes) * program.micro_batches *
           program.data_parallel;
  return faultOf(hasCheckpoints ? "weights, gradients, optimizer state and "
                                  "their copy for --checkpoint"
                                : "weights, gradients and optimizer state",
                 bytes, memory, " for the whole model: leave out --sequential");
}

std::string chimera::runtime::deviceMemoryError(const program::WorkerT &worker,
                                                uint64_t arena,
                                                uint64_t stashes,
                                                uint64_t taken) {
  const uint64_t cap = worker.memory_cap;
  if (cap == 0 || taken <= cap)
    return "";
  const uint64_t planned = arena + stashes;
  const uint64_t others = taken - std::min(taken, planned);
  return "expected at most the memory_cap of " + std::to_string(cap) +
         " bytes in use on the device, got " + std::to_string(taken) + ": " +
         std::to_string(arena) + " of the arena, " + std::to_string(stashes) +
         " of stashes, and " + std::to_string(others) +
         " outside of the plan (buffers of NCCL, workspaces of libraries, "
         "memory that allocators keep): " +
         (others < cap
              ? "compile for memory_cap(" + std::to_string(cap - others) +
                    "), which leaves room for these, or raise the memory_cap"
              : "raise the memory_cap");
}

static void refuse(const std::string &fault) {
  if (!fault.empty())
    throw std::invalid_argument(fault);
}

void chimera::runtime::checkCapacity(const program::ProgramT &program,
                                     std::span<const uint32_t> ranks,
                                     bool hasCheckpoints,
                                     std::span<const uint64_t> readAhead,
                                     bool onAccelerators) {
  refuse(capacityError(program, ranks, hostMemory(), hasCheckpoints, readAhead,
                       onAccelerators));
}

void chimera::runtime::checkSequentialCapacity(const program::ProgramT &program,
                                               size_t stages,
                                               bool hasCheckpoints) {
  refuse(
      faultOfSequentialCapacity(program, stages, hostMemory(), hasCheckpoints));
}
