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

/// Describes the channels of a test: their kind, and the number of ranks that
/// they connect.
struct World {
  enum Kind {
    InProcess,
    Simulated,
    Tcp,
    Unix, ///< TCP channels of one host: Unix sockets
    Mpi,
    Nccl,
    Copies,      ///< all ranks share one GPU
    CopiesOnTwo, ///< even ranks on one GPU, odd on another
    CopiesOfHost ///< all share one GPU; values in host memory
  } kind;
  uint32_t ranks;

  /// Whether a host that waits for a message waits for the host of the peer.
  /// Otherwise it waits only for its own device.
  bool hostsWaitForPeers() const { return kind != Simulated && kind != Nccl; }
  /// Whether the device is simulated or a software GPU. It takes about 1 ms for
  /// a message.
  bool deviceIsSlow() const {
#ifdef CHIMERA_TEST_ON_GPUS
    return false;
#else
    return kind == Simulated || kind == Copies || kind == CopiesOnTwo ||
           kind == CopiesOfHost;
#endif
  }
};
inline void PrintTo(const World &world, std::ostream *stream) {
  constexpr const char *kNames[] = {"InProcess", "Simulated",   "Tcp",
                                    "Unix",      "Mpi",         "Nccl",
                                    "Copies",    "CopiesOnTwo", "CopiesOfHost"};
  *stream << kNames[world.kind] << world.ranks;
}

/// The worlds to test with. In an MPI job this is one world, with the ranks of
/// the job. Otherwise there are several, and their ranks are threads of this
/// process.
std::vector<World> worlds();
/// The worlds whose channels move values in host memory and whose devices are
/// not simulated.
std::vector<World> worldsOfHosts();

/// Whether an operation completes while one of its ranks waits for it and the
/// other ranks compute. An MPI job then needs progress threads. The environment
/// variable CHIMERA_TEST_PROGRESS requests them. Its value `in turn` is for an
/// MPI library that only one thread at a time may call.
bool hasAsynchronousProgress();

/// A rank of a world, with a device and a queue of its own.
struct Rank {
  Channels &channels;
  Device &device;
  Queue &queue;

  uint32_t rank() const { return channels.rank(); }
  /// Blocks the host until a request is complete, on every kind of device.
  void wait(std::unique_ptr<Request> request,
            std::chrono::milliseconds timeout) {
    channels.wait(queue, std::move(request), timeout);
    device.waitFor(queue.record(), timeout);
  }
};

/// Runs `body` once for each rank of a world, each on its own thread. In an MPI
/// job, runs it once, for the rank of this process.
///
/// Each test binary defines onEachRank, worlds, worldsOfHosts and
/// hasAsynchronousProgress: in World.cpp or, for CUDA (software GPU or real),
/// in NcclWorld.cpp or CopyWorld.cpp.
void onEachRank(const World &world, const std::function<void(Rank &)> &body);

/// The pairs of ranks that exchange messages, and the groups of all-reduces, in
/// the conformance tests.
inline Communication communicationAmong(uint32_t ranks) {
  Communication all;
  for (uint32_t from = 0; from < ranks; ++from)
    for (uint32_t to = 0; to < ranks; ++to)
      if (from != to)
        all.pairs.push_back({from, to});
  ReduceGroup everybody{0, {}}, ends{1, {0, ranks - 1}};
  for (uint32_t rank = 0; rank < ranks; ++rank)
    everybody.contributors.push_back(rank);
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
    rank.queue.loadFromHost(bytes(), [&](Bytes host) {
      std::ranges::copy(std::as_bytes(std::span(values)), host.begin());
    });
    loaded = rank.queue.record();
  }
  Values(const Values &) = delete;
  /// Waits until the values have been written, because freeing host memory does
  /// not wait for this.
  ~Values() {
    try {
      rank->device.waitFor(loaded, std::chrono::seconds(100));
    } catch (const std::exception &) {
      // A device that has failed does not free its memory, so a late write does
      // no harm.
    }
  }

  Bytes bytes() { return {block.get(), count * sizeof(T)}; }
  /// The event that occurs when the constructor's values have been written.
  Event after() const { return loaded; }
  /// Reads the present values back to the host.
  std::vector<T> get() {
    std::vector<T> values(count);
    HostBytes host = rank->device.readBack(bytes(), rank->queue.record(),
                                           std::chrono::seconds(100));
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
