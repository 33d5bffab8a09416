//===- CalibrateTest.cpp - What a machine's parts take, measured ----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/Calibrate.h"

#include "runtime/calibrate/MachineText.h"
#include "runtime/channel/InProcess.h"
#include "runtime/control/InProcess.h"
#include "runtime/program/Layers.h"
#include "runtime/stage/SyntheticStage.h"

#include <gtest/gtest.h>
#include <thread>

using namespace chimera;
using namespace chimera::runtime;
using namespace std::chrono_literals;

namespace {
/// What so many threads find, whose layers sleep for a picosecond an operation.
Calibration calibrateThreads(uint32_t ranks) {
  auto controls = makeInProcessControls(ranks);
  auto channels = makeInProcessChannels(ranks);
  Calibration found{};
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      Calibration own = calibrate(*controls[rank], *channels[rank],
                                  {.stages = makeSyntheticStages(1e-3),
                                   .host = {.host = 0,
                                            .cores = ranks,
                                            .threads = 1,
                                            .memory = uint64_t(1) << 31},
                                   .timeout = 30s,
                                   .effort = 0.05,
                                   .fail = [](const std::string &) {}});
      if (rank == 0)
        found = own;
    });
  for (std::thread &thread : threads)
    thread.join();
  return found;
}

TEST(Calibrate, FindsWhatIsThere) {
  for (uint32_t ranks : {2u, 3u}) {
    Calibration found = calibrateThreads(ranks);
    EXPECT_EQ(found.ranks, ranks);
    // Sleeps are late by some of their 20 ms.
    EXPECT_LE(found.most.flops, 1e12);
    EXPECT_GE(found.least.flops, 0.2e12);
    EXPECT_LE(found.least.flops, found.mean.flops);
    EXPECT_LE(found.mean.flops, found.most.flops);
    EXPECT_GT(found.mean.bytes, 0);
    EXPECT_EQ(found.hosts.memory, (uint64_t(1) << 31) / ranks);
    EXPECT_EQ(found.hosts.ranksOnEach, ranks);
    EXPECT_FALSE(found.hosts.shareCores);
    EXPECT_GT(found.way.base + found.send.base + found.receive.base, 0);
    EXPECT_GT(found.sum.base, 0);
    EXPECT_GT(found.sum.perByte, 0);
    EXPECT_EQ(found.clockError, 0);
  }
}

TEST(Calibrate, MeasuresAProgramThatIsOne) {
  program::ProgramT program = programToMeasure(2);
  for (const program::Stage &stage : program.stages)
    EXPECT_EQ(program::checkBytes(*program.model, program::typesOf(program),
                                  program.optimizer->name,
                                  program.micro_batch_size, stage),
              "");
  EXPECT_GT(bytesToMeasure(2), bytesToMeasure(1));
}

/// Of 4 ranks on one host, a core each.
Calibration exampleCalibration() {
  Calibration found{};
  found.ranks = 4;
  found.send = {.base = 310, .perByte = 0, .residual = 0.011};
  found.way = {.base = 1520.4, .perByte = 0.1, .residual = 0.25};
  found.receive = {.base = 0, .perByte = 0.05, .residual = 0};
  found.residual = 0.31;
  found.sum = {.base = 9000, .perByte = 0.2, .residual = 0.08};
  found.mostBytes = 4 << 20;
  found.mostSumBytes = 16 << 20;
  found.mean = {51.26e9, 8.5e9};
  found.least = {50e9, 8e9};
  found.most = {52e9, 9e9};
  found.hosts.ranksOnEach = 4;
  found.hosts.memory = (uint64_t(3) << 30) + 5;
  found.seconds = 12.4;
  return found;
}

/// Each line of a machine's text is a comment or the op.
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
      text.find("// 2 % (send), 25 % (way), 0 % (receive), together 31 %; "
                "all-reduces by 8 %."),
      std::string::npos)
      << text;
  EXPECT_EQ(text.find("Clocks"), std::string::npos);
  EXPECT_EQ(text.find("share"), std::string::npos);
  EXPECT_EQ(text.find("node_"), std::string::npos);
  found.clockError = 12'340;
  text = machineText(found, "a process each, over TCP, 1 thread each");
  EXPECT_NE(text.find("12.3 us at worst"), std::string::npos) << text;
  expectComments(text);
}

// The simulator slows ranks that share cores down itself.
TEST(MachineText, HasTheSpeedOfARankThatSharesNoCore) {
  Calibration found = exampleCalibration();
  found.hosts.shareCores = true;
  found.hosts.ranksWithCores = 2;
  std::string text = machineText(found, "threads of one process");
  EXPECT_NE(text.find("speed(\"102.5 GFLOP/s\") "
                      "memory_bandwidth(\"17.0 GB/s\")\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\n    node_devices(4) node_cores(2)\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("the means times 2, "), std::string::npos) << text;
  expectComments(text);
  // A table for people has both.
  std::string table = machineTable(found);
  EXPECT_NE(table.find("51.3 GFLOP/s"), std::string::npos) << table;
  EXPECT_NE(table.find("alone, a rank is     2 times as fast"),
            std::string::npos)
      << table;
}

TEST(MachineText, LeavesSpeedsOfHostsThatDifferAsMeasured) {
  Calibration found = exampleCalibration();
  found.hosts.count = 2;
  found.hosts.ranksOnEach = 0;
  found.hosts.shareCores = true;
  std::string text = machineText(found, "a process each, over TCP");
  EXPECT_NE(text.find("speed(\"51.3 GFLOP/s\")"), std::string::npos) << text;
  EXPECT_EQ(text.find("node_devices("), std::string::npos) << text;
  EXPECT_NE(text.find("there are no node_cores"), std::string::npos) << text;
  expectComments(text);
}
} // namespace
