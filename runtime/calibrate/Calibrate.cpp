//===- Calibrate.cpp - Measures a machine ---------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/Calibrate.h"

#include "runtime/calibrate/MessageTimes.h"
#include "runtime/calibrate/SumOverlap.h"
#include "runtime/control/Messages.h"
#include "runtime/device/Host.h"
#include "runtime/interpreter/Status.h"
#include "runtime/train/Clocks.h"
#include "runtime/watch/Watchdog.h"

#include <algorithm>
#include <numeric>
#include <optional>

using namespace chimera;
using namespace chimera::runtime;

namespace {
constexpr uint64_t kMessageSizes[] = {8,          4 * kKiB, 64 * kKiB,
                                      256 * kKiB, kMiB,     4 * kMiB};
constexpr uint64_t kSumSizes[] = {8,    64 * kKiB, 256 * kKiB,
                                  kMiB, 4 * kMiB,  16 * kMiB};
/// The sizes of messages and sums if ranks compute on devices that are not
/// hosts. They are larger than on hosts, because such a device can move more
/// bytes in the time of the smallest message.
constexpr uint64_t kBytesOnDevices[] = {8,        64 * kKiB, kMiB,
                                        4 * kMiB, 16 * kMiB, 64 * kMiB};
/// A line is fitted to at least this number of sizes. If larger sizes take too
/// long, they are left out.
constexpr size_t kFewest = 3;
constexpr int kRounds = 48, kFewestRounds = 16;
/// A round of messages takes 16 ms times a scale. Sizes that need a larger
/// scale than this are left out.
constexpr int64_t kMaxScale = 8;
constexpr int kSumRounds = 15, kFewestSumRounds = 3;
/// The size of the all-reduces that run concurrently with computation.
constexpr uint64_t kOverlapBytes = 16 * kMiB;
constexpr double kOverlapMilliseconds = 1000;
/// The duration of the measurement of layers. The measurement of updates takes
/// as long.
constexpr double kWindowMilliseconds = 2500;
/// The number of blocks of the model whose speed is measured. A rank may use a
/// quarter of its memory for this model.
constexpr uint32_t kBlocks = 4;
constexpr uint64_t kPartOfMemory = 4;

/// The calibration at one rank.
class Measurement {
public:
  Measurement(Control &control, Channels &channels,
              const CalibrationOptions &options)
      : control(control), channels(channels), options(options),
        isRoot(control.rank() == 0),
        ownHost(options.device ? nullptr : makeHostDevice()),
        device(options.device ? *options.device : *ownHost),
        queue(device, options.timeout) {}

  Calibration run() {
    const int64_t begin = steadyNanoseconds();
    found.ranks = control.ranks();
    HostOfRank own = options.host;
    if (const auto capacity = device.capacity()) {
      own.memory = capacity->freeBytes;
      own.ranksOnDevice = capacity->ranks;
    }
    found.hosts = hostsOf(gatherHosts(control, own, options.timeout));
    compareClocks();
    prepare();
    measureAllMessages();
    measureAllSums();
    measureAllDevices();
    found.seconds = static_cast<double>(steadyNanoseconds() - begin) * 1e-9;
    return found;
  }

private:
  /// Returns rank 0's value at all ranks.
  template <typename Value> Value broadcastFromRoot(Value value) {
    if (!isRoot)
      return receiveValue<Value>(control, 0, options.timeout);
    for (uint32_t rank = 1; rank < control.ranks(); ++rank)
      sendValue(control, rank, value, options.timeout);
    return value;
  }

  /// Returns the largest value of all ranks, at all ranks.
  int64_t maxOverRanks(int64_t value) {
    for (int64_t other : gatherValues(control, 0, value, options.timeout))
      value = std::max(value, other);
    return broadcastFromRoot(value);
  }

  void compareClocks() {
    const std::vector<ClockOffset> clocks =
        gatherClocks(control, 0, options.timeout);
    if (!isRoot) {
      clockAhead = receiveValue<int64_t>(control, 0, options.timeout);
      return;
    }
    for (uint32_t rank = 0; rank < control.ranks(); ++rank) {
      found.clockError = std::max(found.clockError, clocks[rank].error);
      if (rank > 0)
        sendValue(control, rank, clocks[rank].ahead, options.timeout);
    }
  }

  void prepare() {
    Communication communication;
    // Programs for GPUs are proven under this model.
    if (!device.isSynchronous())
      communication.model = program::MessageModel::StreamPerDevice;
    for (uint32_t rank = 0; rank < control.ranks(); ++rank)
      for (uint32_t other : {rank - 1, rank + 1})
        if (other < control.ranks())
          communication.pairs.push_back({rank, other});
    // The group of all ranks, then the group of each host.
    communication.groups.push_back(groupOf(0, 0, control.ranks()));
    if (found.hosts.haveNodeLinks())
      for (uint32_t host = 0; host < found.hosts.count; ++host)
        communication.groups.push_back(groupOfHost(host));
    Watchdog limit(options.timeout, "all ranks to create their communicators",
                   options.fail);
    channels.prepare(communication);
    barrier(control, options.timeout,
            "all ranks to have created their communicators");
  }

  static ReduceGroup groupOf(uint32_t id, uint32_t first, uint32_t count) {
    ReduceGroup group{id, std::vector<uint32_t>(count)};
    std::iota(group.contributors.begin(), group.contributors.end(), first);
    return group;
  }
  /// The group of the ranks of `host`. Requires Hosts::haveNodeLinks.
  ReduceGroup groupOfHost(uint32_t host) const {
    const uint32_t count = found.hosts.ranksOnEach;
    return groupOf(1 + host, host * count, count);
  }

  /// About half of the time of a round trip between neighbours, for the slowest
  /// pair. Returned at all ranks.
  int64_t roughOneWayTime(uint64_t bytes) {
    int64_t took = roughlyFrom(0, bytes);
    // The pairs (0, 1), (2, 3), … may all be within hosts. So the other pairs
    // are measured, too.
    if (found.hosts.haveNodeLinks())
      took = std::max(took, roughlyFrom(1, bytes));
    return maxOverRanks(took);
  }

  /// About half of the time of a round trip at this rank, measured with the
  /// pairs (first, first + 1), (first + 2, first + 3), …. 0 if the rank is in
  /// no pair.
  int64_t roughlyFrom(uint32_t first, uint64_t bytes) {
    const uint32_t self = control.rank();
    const uint32_t peer = ((self - first) ^ 1) + first;
    int64_t took = 0;
    barrier(control, options.timeout, "all ranks to measure");
    if (self >= first && peer < control.ranks()) {
      const Block memory = queue.zeros(bytes);
      const Bytes buffer(memory.get(), bytes);
      auto send = [&] {
        channels.wait(queue.get(), channels.postSend(peer, buffer),
                      options.timeout);
        queue.timeOf(queue.recordPoint());
      };
      auto receive = [&] {
        channels.wait(queue.get(), channels.postReceive(peer, buffer),
                      options.timeout);
        queue.timeOf(queue.recordPoint());
      };
      // The first trip may open connections, so only the last trip counts.
      for (int trip = 0; trip < 3; ++trip) {
        const int64_t begin = steadyNanoseconds();
        self < peer ? send() : receive();
        self < peer ? receive() : send();
        took = (steadyNanoseconds() - begin) / 2;
      }
    }
    return took;
  }

  void measureAllMessages() {
    const bool haveNodeLinks = found.hosts.haveNodeLinks();
    MessagesBySize costs, onHosts;
    for (uint64_t bytes : sizesOf(kMessageSizes)) {
      MessageRounds rounds{
          .bytes = bytes, .clockAhead = clockAhead, .timeout = options.timeout};
      rounds.scale = 1 + roughOneWayTime(bytes) / kMillisecond;
      if (costs.sizeCount() >= kFewest && rounds.scale > kMaxScale)
        break;
      rounds.rounds = std::max(
          kFewestRounds, static_cast<int>(options.effort * kRounds /
                                          static_cast<double>(rounds.scale)));
      MessageTimes times, onHost;
      measureMessages(control, channels, queue, rounds,
                      [&](uint32_t peer) -> MessageTimes & {
                        return haveNodeLinks && isOnThisHost(peer) ? onHost
                                                                   : times;
                      });
      costs.add(bytes, costOf(gatherTimes(control, times, options.timeout)));
      if (haveNodeLinks)
        onHosts.add(bytes,
                    costOf(gatherTimes(control, onHost, options.timeout)));
      found.largestMessage = bytes;
    }
    found.links = costs.fit();
    if (haveNodeLinks)
      found.hostLinks = onHosts.fit();
  }

  /// Whether `rank` is on this rank's host. Requires Hosts::haveNodeLinks.
  bool isOnThisHost(uint32_t rank) const {
    return rank / found.hosts.ranksOnEach ==
           control.rank() / found.hosts.ranksOnEach;
  }

  void measureAllSums() {
    const uint32_t onEach = found.hosts.ranksOnEach;
    found.links.sum = measureSumsOf(groupOf(0, 0, control.ranks()));
    const uint64_t mostOfAll = found.largestSum;
    if (found.hostLinks)
      found.hostLinks->sum =
          measureSumsOf(groupOfHost(control.rank() / onEach));
    // If a device executes later, all-reduces run concurrently with
    // computation, so nothing is measured.
    if (device.isSynchronous())
      found.hiddenSum =
          hiddenPart(control, channels, groupOf(0, 0, control.ranks()),
                     std::min(mostOfAll, kOverlapBytes),
                     std::chrono::milliseconds(static_cast<int64_t>(
                         options.effort * kOverlapMilliseconds)),
                     clockAhead, options.timeout);
  }

  /// The line of sums over `group`. If several groups are measured at the same
  /// time, all of them must have the same number of ranks.
  SumLine measureSumsOf(const ReduceGroup &group) {
    std::vector<TimedSize> sums;
    auto measure = [&](uint64_t bytes, int rounds) {
      return medianOf(measureSums(control, channels, queue, group, bytes,
                                  rounds, clockAhead, options.timeout));
    };
    for (uint64_t bytes : sizesOf(kSumSizes)) {
      const auto rough = broadcastFromRoot(
          static_cast<int64_t>(measure(bytes, /*rounds=*/1)) / kMillisecond);
      if (sums.size() >= kFewest && rough > 1000)
        break;
      const auto rounds =
          std::clamp(static_cast<int>(options.effort * 1000 /
                                      static_cast<double>(1 + rough)),
                     kFewestSumRounds, kSumRounds);
      sums.push_back({bytes, measure(bytes, rounds)});
      found.largestSum = std::max(found.largestSum, bytes);
    }
    return fitSums(sums, static_cast<uint32_t>(group.contributors.size()));
  }

  std::span<const uint64_t> sizesOf(std::span<const uint64_t> onHosts) const {
    return device.isSynchronous() ? onHosts : kBytesOnDevices;
  }

  /// Chooses the largest model that fits into the memory of every rank.
  program::ProgramT chooseModel() {
    const uint64_t room = found.hosts.memory / kPartOfMemory;
    if (!device.isSynchronous())
      for (const BlockSizes &sizes : kSizesOnDevices) {
        found.sizes = sizes;
        if (bytesToMeasure(1, sizes) <= room)
          break;
      }
    uint32_t blocks = kBlocks;
    while (blocks > 1 && bytesToMeasure(blocks, found.sizes) > room)
      --blocks;
    return programToMeasure(blocks, found.sizes);
  }

  void measureAllDevices() {
    const program::ProgramT program = chooseModel();
    const std::unique_ptr<Stage> stage = options.stages(program, 1);
    const DeviceSpeed own =
        measureSpeed(control, device, program, *stage,
                     std::chrono::milliseconds(static_cast<int64_t>(
                         options.effort * kWindowMilliseconds)),
                     clockAhead, options.timeout);
    found.mean = {0, 0};
    found.least = found.most = own;
    for (const DeviceSpeed &speed :
         gatherValues(control, 0, own, options.timeout)) {
      found.mean.flopsPerSecond += speed.flopsPerSecond / control.ranks();
      found.mean.bytesPerSecond += speed.bytesPerSecond / control.ranks();
      found.least = {
          std::min(found.least.flopsPerSecond, speed.flopsPerSecond),
          std::min(found.least.bytesPerSecond, speed.bytesPerSecond)};
      found.most = {std::max(found.most.flopsPerSecond, speed.flopsPerSecond),
                    std::max(found.most.bytesPerSecond, speed.bytesPerSecond)};
    }
  }

  Control &control;
  Channels &channels;
  const CalibrationOptions &options;
  const bool isRoot;
  const std::unique_ptr<Device> ownHost;
  Device &device;
  MeasuredQueue queue;
  int64_t clockAhead = 0;
  Calibration found{};
};
} // namespace

Calibration chimera::runtime::calibrate(Control &control, Channels &channels,
                                        const CalibrationOptions &options) {
  return Measurement(control, channels, options).run();
}
