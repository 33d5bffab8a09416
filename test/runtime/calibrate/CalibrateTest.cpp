//===- CalibrateTest.cpp - Measured times of a machine's parts ------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/Calibrate.h"

#include "runtime/calibrate/MachineText.h"
#include "runtime/channel/InProcess.h"
#include "runtime/control/InProcess.h"
#include "runtime/model/SyntheticStage.h"
#include "runtime/program/CheckStages.h"
#include "runtime/program/Layers.h"
#include "test/runtime/Timeouts.h"
#include "test/runtime/calibrate/ForwardingChannels.h"
#include "test/runtime/program/BuiltGpt2.h"

#include <gtest/gtest.h>
#include <thread>

using namespace chimera;
using namespace chimera::runtime;

namespace {
/// Channels that sleep for `slow` before each message to another host and
/// before each all-reduce over two hosts.
class SlowBetweenHosts : public ForwardingChannels {
public:
  SlowBetweenHosts(Channels &channels, const std::vector<uint32_t> &hosts,
                   std::chrono::milliseconds slow)
      : ForwardingChannels(channels), hosts(hosts), slow(slow) {}
  std::unique_ptr<Request> postSendBlock(uint32_t to, Block &memory,
                                         uint64_t size, Event after) override {
    sleepOnWayTo(to);
    return ForwardingChannels::postSendBlock(to, memory, size, after);
  }
  std::unique_ptr<Request> startAllReduce(const ReduceGroup &group,
                                          ElementType type,
                                          std::vector<ConstBytes> contributions,
                                          Bytes sum, Event after) override {
    // If the group has ranks on two hosts, the first and the last rank are on
    // different ones.
    sleepOnWayTo(group.contributors.front());
    sleepOnWayTo(group.contributors.back());
    return ForwardingChannels::startAllReduce(
        group, type, std::move(contributions), sum, after);
  }

private:
  void sleepOnWayTo(uint32_t other) const {
    if (hosts[other] != hosts[rank()])
      std::this_thread::sleep_for(slow);
  }

  const std::vector<uint32_t> &hosts;
  const std::chrono::milliseconds slow;
};

/// The calibration of ranks that are threads. They report the given hosts as
/// theirs. A message between hosts takes `slow` longer. Their layers sleep for
/// a picosecond per floating-point operation.
Calibration calibrateThreads(
    const std::vector<uint32_t> &hosts,
    std::chrono::milliseconds slow = std::chrono::milliseconds(2)) {
  const auto ranks = static_cast<uint32_t>(hosts.size());
  auto controls = makeInProcessControls(ranks);
  auto channels = makeInProcessChannels(ranks);
  Calibration found{};
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      SlowBetweenHosts between(*channels[rank], hosts, slow);
      Calibration own = calibrate(*controls[rank], between,
                                  {.stages = makeSyntheticStages(1e-3),
                                   .host = {.host = hosts[rank],
                                            .cores = ranks,
                                            .threads = 1,
                                            .memory = uint64_t(1) << 31},
                                   .timeout = test::kPatience,
                                   .effort = 0.05,
                                   .fail = [](const std::string &) {}});
      if (rank == 0)
        found = own;
    });
  for (std::thread &thread : threads)
    thread.join();
  return found;
}

TEST(Calibrate, FindsTheSpeedsOfTheDevices) {
  // If two hosts have different numbers of ranks, the calibration does not
  // distinguish links inside and between hosts.
  for (uint32_t hosts : {1u, 2u}) {
    const uint32_t ranks = 1 + hosts;
    Calibration found =
        calibrateThreads(hosts == 1 ? std::vector<uint32_t>{0, 0}
                                    : std::vector<uint32_t>{0, 0, 2});
    EXPECT_EQ(found.hosts.count, hosts);
    EXPECT_EQ(found.hosts.ranksOnEach, hosts == 1 ? 2u : 0u);
    EXPECT_EQ(found.ranks, ranks);
    // Sleeps of 20 ms take longer than requested. So the measured speed is at
    // most the true one, 1e12.
    EXPECT_LE(found.most.flopsPerSecond, 1e12);
    EXPECT_GT(found.least.flopsPerSecond, 0);
    EXPECT_LE(found.least.flopsPerSecond, found.mean.flopsPerSecond);
    EXPECT_LE(found.mean.flopsPerSecond, found.most.flopsPerSecond);
    EXPECT_GT(found.mean.bytesPerSecond, 0);
    EXPECT_EQ(found.hosts.memory, uint64_t(1) << 30);
    EXPECT_FALSE(found.hosts.shareCores);
    EXPECT_TRUE(found.hiddenSum);
    const LinkTimes &links = found.links;
    // If the machine has other work, a line fitted to times may have no slope,
    // or may begin at 0. But it has one of both.
    EXPECT_GT(links.transit.base + links.send.base + links.receive.base +
                  links.transit.perByte + links.send.perByte +
                  links.receive.perByte,
              0);
    EXPECT_GT(links.sum.message.base + links.sum.message.perByte, 0);
    EXPECT_FALSE(found.hostLinks);
    EXPECT_EQ(found.clockError, 0);
  }
}

TEST(Calibrate, TellsLinksWithinHostsFromThoseBetween) {
  // Other processes may make messages within a host slow too. So try again with
  // messages between hosts that are much slower.
  test::retryUntilSuccess(
      std::chrono::milliseconds(2), [](auto slowness) -> std::string {
        const double slow = std::chrono::nanoseconds(slowness).count();
        Calibration found = calibrateThreads({0, 0, 2, 2}, slowness);
        EXPECT_EQ(found.hosts.count, 2u);
        EXPECT_EQ(found.hosts.ranksOnEach, 2u);
        if (!found.hostLinks)
          return "no links within a host";
        // An all-reduce of 4 ranks has 4 messages one after another, and an
        // all-reduce of 2 ranks has 2 messages. `message` has the time of one
        // of them.
        if (found.links.send.base >= 0.9 * slow &&
            found.links.sum.message.base * 4 >= 0.9 * slow &&
            found.hostLinks->send.base <= 0.5 * slow &&
            found.hostLinks->sum.message.base * 2 <= 0.5 * slow)
          return "";
        return "links between hosts: " + std::to_string(found.links.send.base) +
               " and " + std::to_string(found.links.sum.message.base) +
               ", within a host: " +
               std::to_string(found.hostLinks->send.base) + " and " +
               std::to_string(found.hostLinks->sum.message.base);
      });
}

TEST(Calibrate, MeasuresAValidProgram) {
  program::ProgramT program = programToMeasure(2);
  for (const program::Stage &stage : program.stages)
    EXPECT_EQ(program::checkBytes(*program.model, program::typesOf(program),
                                  *program.optimizer, program.micro_batch_size,
                                  stage),
              "");
  EXPECT_GT(bytesToMeasure(2), bytesToMeasure(1));
}

/// An example of a calibration: 4 ranks on one host, each with its own core.
Calibration exampleCalibration() {
  Calibration found{};
  found.ranks = 4;
  found.links = {
      .send = {.base = 310, .perByte = 0, .residual = 0.011},
      .transit = {.base = 1520.4, .perByte = 0.1, .residual = 0.25},
      .receive = {.base = 0, .perByte = 0.05, .residual = 0},
      .residual = 0.31,
      .sum = {.message = {.base = 9000, .perByte = 0.2, .residual = 0.08},
              .smallest = {8, 20'000},
              .smallestByLine = 36'000},
  };
  found.largestMessage = 4 << 20;
  found.largestSum = 16 << 20;
  found.mean = {51.26e9, 8.5e9};
  found.least = {50e9, 8e9};
  found.most = {52e9, 9e9};
  found.hosts.ranksOnEach = 4;
  found.hosts.memory = (uint64_t(3) << 30) + 5;
  found.seconds = 12.4;
  return found;
}

/// Checks that each line of `text` before the op chimera.machine is a comment.
void expectComments(const std::string &text) {
  for (size_t at = 0; at < text.find("chimera.machine");
       at = text.find('\n', at) + 1)
    EXPECT_EQ(text.compare(at, 2, "//"), 0) << text.substr(at, 40);
}

TEST(MachineText, SaysHowAndHowWell) {
  Calibration found = exampleCalibration();
  std::string text =
      machineText(found, "threads of one process, 1 thread each");
  const char *expected =
      "chimera.machine @here devices(4) memory(3072 MiB)\n"
      "    speed(\"51.3 GFLOP/s\") memory_bandwidth(\"8.500 GB/s\")\n"
      "    link <latency = 1520 ns, per_mib = 104858 ns,\n"
      "          send = 310 ns,\n"
      "          receive_per_mib = 52429 ns>\n"
      "    all_reduce <latency = 9000 ns, per_mib = 209715 ns>\n";
  EXPECT_NE(text.find(expected), std::string::npos) << text;
  EXPECT_NE(
      text.find("// 2 % (send), 25 % (way), 0 % (receive), together 31 %.\n"
                "// All-reduces of 64 KiB and more: at most 8 %;\n"
                "// an all-reduce of 8 B takes 20.0 us (line: 36.0 us).\n"),
      std::string::npos)
      << text;
  EXPECT_EQ(text.find("Clocks"), std::string::npos);
  EXPECT_EQ(text.find("share"), std::string::npos);
  EXPECT_EQ(text.find("node_"), std::string::npos);
  found.clockError = 12'340;
  text = machineText(found, "a process each, over TCP, 1 thread each");
  EXPECT_NE(text.find("at most 12.3 us"), std::string::npos) << text;
  expectComments(text);
}

TEST(MachineText, HasAWordForSumsThatBlock) {
  Calibration found = exampleCalibration();
  EXPECT_EQ(machineText(found, "threads").find("blocking_all_reduce"),
            std::string::npos);
  for (double hidden : {0.07, 0.93}) {
    found.hiddenSum = hidden;
    const bool blocks = hidden < 0.5;
    std::string text = machineText(found, "threads");
    EXPECT_EQ(text.ends_with("per_mib = 209715 ns>\n    "
                             "blocking_all_reduce\n"),
              blocks)
        << text;
    EXPECT_NE(text.find(blocks ? "// Computation hides 7 % of an all-reduce: "
                                 "blocking_all_reduce.\n"
                               : "// Computation hides 93 % of an all-reduce: "
                                 "no blocking_all_reduce.\n"),
              std::string::npos)
        << text;
    expectComments(text);
  }
}

// The text states the speed of a rank that computes alone. The simulator
// computes the slowdown of ranks that share cores.
TEST(MachineText, HasTheSpeedOfARankThatSharesNoCore) {
  Calibration found = exampleCalibration();
  found.hosts.shareCores = true;
  found.hosts.concurrentRanks = 2;
  std::string text = machineText(found, "threads of one process");
  EXPECT_NE(text.find("speed(\"102.5 GFLOP/s\") "
                      "memory_bandwidth(\"17.0 GB/s\")\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\n    node_devices(4) node_cores(2)\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("the measured means times 2, "), std::string::npos)
      << text;
  expectComments(text);
  // The table for human readers has both speeds.
  std::string table = machineTable(found);
  EXPECT_NE(table.find("51.3 GFLOP/s"), std::string::npos) << table;
  EXPECT_NE(table.find("alone, a rank is     2 times as fast"),
            std::string::npos)
      << table;
}

TEST(MachineText, HasTheLinksOfNodes) {
  Calibration found = exampleCalibration();
  found.hosts.count = 2;
  found.hosts.ranksOnEach = 2;
  found.hostLinks = LinkTimes{
      .send = {.base = 200, .perByte = 0, .residual = 0.02},
      .transit = {.base = 500, .perByte = 0.01, .residual = 0.03},
      .receive = {},
      .residual = 0.04,
      .sum = {.message = {.base = 600, .perByte = 0.02, .residual = 0.05},
              .smallest = {8, 2000},
              .smallestByLine = 1200},
  };
  std::string text = machineText(found, "a process each, over TCP");
  EXPECT_NE(text.find("\n    all_reduce <latency = 9000 ns, per_mib = 209715 "
                      "ns>\n"
                      "    node_devices(2)\n"
                      "    node_link <latency = 500 ns, per_mib = 10486 ns,\n"
                      "               send = 200 ns>\n"
                      "    node_all_reduce <latency = 600 ns, per_mib = 20972 "
                      "ns>\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("// 2 hosts with 2 ranks each: "), std::string::npos)
      << text;
  EXPECT_NE(text.find("// Within hosts: 2 % (send), 3 % (way), 0 % (receive), "
                      "together 4 %.\n// All-reduces of 64 KiB and more: "
                      "at most 5 %;\n"),
            std::string::npos)
      << text;
  expectComments(text);
  std::string table = machineTable(found);
  const size_t between = table.find("between hosts\n"),
               within = table.find("within a host\n");
  ASSERT_NE(within, std::string::npos) << table;
  EXPECT_LT(between, table.find("message: sender          0.31")) << table;
  EXPECT_LT(within, table.find("message: sender          0.20")) << table;
}

TEST(BlockLike, HasTheSizesOfTheFirstBoundary) {
  auto sizesOf = [](const program::PackageT &model) {
    const BlockSizes sizes = blockLike(model);
    return std::vector{sizes.width, sizes.heads, sizes.context, sizes.samples};
  };
  using Numbers = std::vector<uint32_t>;
  EXPECT_EQ(sizesOf(program::builtGpt2({.width = 8, .context = 6})),
            (Numbers{8, 4, 6, 1}));
  // A width that four heads do not divide.
  EXPECT_EQ(sizesOf(program::builtGpt2({.width = 6, .context = 6})),
            (Numbers{6, 1, 6, 1}));
  program::PackageT large = program::builtGpt2({.width = 512, .context = 1024});
  EXPECT_EQ(sizesOf(large), (Numbers{256, 4, 128, 1}));
  // In these shapes no dimension is known to count vectors: the dimension of
  // the samples has the constant 0.
  auto &boundary = large.kinds[0]->graphs->outputs[0]->shape;
  for (const std::vector<int64_t> &shape :
       {std::vector<int64_t>{6, 0, 8}, {0, 8}, {0, 3, 8, 8}}) {
    boundary = shape;
    EXPECT_EQ(sizesOf(large), (Numbers{256, 4, 128, 1}));
  }
}

TEST(MachineText, LeavesSpeedsOfHostsThatDifferAsMeasured) {
  Calibration found = exampleCalibration();
  found.hosts.count = 2;
  found.hosts.ranksOnEach = 0;
  found.hosts.shareCores = true;
  std::string text = machineText(found, "a process each, over TCP");
  EXPECT_NE(text.find("speed(\"51.3 GFLOP/s\")"), std::string::npos) << text;
  EXPECT_EQ(text.find("node_devices("), std::string::npos) << text;
  EXPECT_NE(text.find("there is no node_cores"), std::string::npos) << text;
  EXPECT_NE(text.find("mix messages within and between hosts"),
            std::string::npos)
      << text;
  expectComments(text);
}
TEST(SlownessOfType, IsBesideFloat32) {
  const program::ProgramT program =
      programToMeasure(2, kSizesOnHosts, program::DataType::BFloat16);
  // Other processes may delay the ends of sleeps. So try again with longer
  // sleeps.
  test::retryUntilSuccess(
      std::chrono::milliseconds(1), [&](auto scale) -> std::string {
        // These layers sleep three times as long in bfloat16 as in float32.
        const double perUnit = 1e-2 * static_cast<double>(scale.count());
        const StageFactory stages = [=](const program::ProgramT &block,
                                        uint32_t stage) {
          const bool isSlow = program::typesOf(block).activations ==
                              program::DataType::BFloat16;
          return makeSyntheticStages(isSlow ? 3 * perUnit : perUnit)(block,
                                                                     stage);
        };
        const double slowness = relativeTimeOfType(program, stages);
        return slowness > 2 && slowness < 4 ? "" : std::to_string(slowness);
      });
}

TEST(SlownessOfType, IsReportedIfLarge) {
  EXPECT_EQ(noteOfSlowType(program::DataType::BFloat16, 0.6), "");
  EXPECT_EQ(noteOfSlowType(program::DataType::BFloat16, 1.9), "");
  EXPECT_EQ(noteOfSlowType(program::DataType::BFloat16, 7.94)
                .find("a transformer block takes 7.9 times as long in "
                      "bfloat16 as in float32"),
            0u);
}
} // namespace
