//===- World.h - Ranks for a test of channels -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_CHANNEL_WORLD_H
#define CHIMERA_TEST_RUNTIME_CHANNEL_WORLD_H

#include "runtime/channel/Channels.h"

#include <functional>
#include <ostream>

namespace chimera::runtime::test {

/// Describes a set of channels: their kind, and the number of ranks that they
/// connect.
struct World {
  enum Kind {
    InProcess,
    Simulated,
    Tcp,
    Unix, ///< like Tcp within a host
    Mpi,
    Nccl,
    Copies,      ///< all on one GPU
    CopiesOnTwo, ///< alternating between two GPUs
    CopiesOfHost ///< on one GPU, in host memory
  } kind;
  uint32_t ranks;

  /// Whether a wait of a host is for the hosts of other ranks.
  bool hostsMeet() const { return kind != Simulated && kind != Nccl; }
};
inline void PrintTo(const World &world, std::ostream *stream) {
  constexpr const char *kNames[] = {"InProcess", "Simulated",   "Tcp",
                                    "Unix",      "Mpi",         "Nccl",
                                    "Copies",    "CopiesOnTwo", "CopiesOfHost"};
  *stream << kNames[world.kind] << world.ranks;
}

/// The worlds to test with: several in one process, or that of the MPI job to
/// which this process belongs.
std::vector<World> worlds();
/// The worlds with memory of the host.
std::vector<World> worldsOfHosts();

/// Whether the operations of all ranks complete if one rank waits and the
/// others are busy. In an MPI job that needs progress threads, which
/// CHIMERA_TEST_PROGRESS in the environment requests. The value `in turn` is
/// for an MPI that must be called by one thread at a time.
bool oneRankSuffices();

/// A rank of a world, with a device and a queue of its own.
struct Rank {
  Channels &channels;
  Device &device;
  Queue &queue;

  uint32_t rank() const { return channels.rank(); }
  /// Makes the host wait for a request, whatever the device is.
  void wait(std::unique_ptr<Request> request,
            std::chrono::milliseconds timeout) {
    channels.wait(queue, std::move(request), timeout);
    device.waitFor(queue.record(), timeout);
  }
};

/// Runs `body` once for each rank of a world, on threads. In an MPI job it runs
/// once, for this process's rank.
///
/// Each binary defines this function and those above: in World.cpp or, for CUDA
/// (software GPU or real), in NcclWorld.cpp or CopyWorld.cpp.
void onEachRank(const World &world, const std::function<void(Rank &)> &body);

/// The communication of the suite's tests.
inline Communication communicationAmong(uint32_t ranks) {
  Communication all;
  for (uint32_t from = 0; from < ranks; ++from)
    for (uint32_t to = 0; to < ranks; ++to)
      if (from != to)
        all.pairs.push_back({from, to});
  ReduceGroup everybody{0, {}}, ends{1, {0, ranks - 1}};
  for (uint32_t rank = 0; rank < ranks; ++rank)
    everybody.contributions.push_back(rank);
  all.groups = {everybody, ends};
  for (uint32_t rank = 1; rank + 1 < ranks; ++rank)
    all.groups.push_back({rank + 1, {0, rank, ranks - 1}});
  return all;
}

/// Values in memory of a rank's device.
template <typename T> class Values {
public:
  Values(Rank &rank, std::vector<T> values)
      : rank(&rank), block(rank.device.allocate(values.size() * sizeof(T))),
        count(values.size()) {
    rank.queue.load(bytes(), [&](Bytes host) {
      std::ranges::copy(std::as_bytes(std::span(values)), host.begin());
    });
    loaded = rank.queue.record();
  }
  Values(const Values &) = delete;
  /// Waits for the load, because freeing host memory does not.
  ~Values() {
    try {
      rank->device.waitFor(loaded, std::chrono::seconds(30));
    } catch (const std::exception &) {
      // If the device has failed, its memory is kept.
    }
  }

  Bytes bytes() { return {block.get(), count * sizeof(T)}; }
  /// The event after which the values are there.
  Event after() const { return loaded; }
  /// The present values.
  std::vector<T> get() {
    std::vector<T> values(count);
    HostBytes host = rank->device.readBack(bytes(), rank->queue.record(),
                                           std::chrono::seconds(30));
    std::ranges::copy(host.get(),
                      std::as_writable_bytes(std::span(values)).begin());
    return values;
  }

private:
  Rank *rank;
  Block block;
  size_t count;
  Event loaded;
};

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CHANNEL_WORLD_H
