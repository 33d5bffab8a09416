//===- CalibrateGpusTest.cpp - Measured times of GPUs ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/CalibrateRanks.h"
#include "runtime/calibrate/MachineText.h"
#include "runtime/interpreter/Status.h"
#include "runtime/model/SyntheticStage.h"
#include "runtime/program/CheckStages.h"
#include "runtime/program/Layers.h"
#include "runtime/train/cuda/Accelerator.h"
#include "test/runtime/cuda/CleanGpus.h"

#include <gtest/gtest.h>
#include <thread>

using namespace chimera;
using namespace chimera::runtime;
using namespace std::chrono_literals;

namespace {
constexpr uint64_t kGiB = uint64_t(1) << 30;

class CalibrateGpus : public test::CleanGpus {
protected:
  /// The calibration of two ranks, which are threads. Their layers sleep for a
  /// picosecond per floating-point operation.
  static Calibration calibrate(int gpus, bool transportAllReduce) {
    test::setDevices(gpus, kGiB);
    const std::unique_ptr<Accelerator> accelerator = makeCudaAccelerator(
        {.stagesOnHost = true, .transportAllReduce = transportAllReduce}, {});
    CalibrationSetup use;
    use.stages = makeSyntheticStages(1e-3);
    use.setThreads = [](uint32_t) {};
    use.timeout = 30s;
    use.accelerator = accelerator.get();
    use.effort = 0.05;
    std::optional<Calibration> found;
    use.onResult = [&](const Calibration &each, const HostResources &) {
      found = each;
    };
    calibrateOnThreads(2, use);
    return found.value();
  }
};

void expectSpeedsAndTimes(const Calibration &found) {
  // Sleeps of some milliseconds take longer than requested. So the measured
  // speed is at most the true one, 1e12.
  EXPECT_LE(found.most.flopsPerSecond, 1e12);
  EXPECT_GT(found.least.flopsPerSecond, 0);
  EXPECT_GT(found.mean.bytesPerSecond, 0);
  // If the machine has other work, a line fitted to times may have no slope, or
  // may begin at 0. But it has one of both.
  const LinkTimes &links = found.links;
  EXPECT_GT(links.transit.base + links.send.base + links.receive.base +
                links.transit.perByte + links.send.perByte +
                links.receive.perByte,
            0);
  EXPECT_GT(links.sum.message.base + links.sum.message.perByte, 0);
  EXPECT_FALSE(found.hostLinks);
}

TEST(ModelsOfGpus, NeedTheStatedMemory) {
  uint64_t last = UINT64_MAX;
  for (const BlockSizes &sizes : kSizesOnDevices) {
    const program::ProgramT program = programToMeasure(4, sizes);
    const program::Types types = program::typesOf(program);
    for (const program::Stage &stage : program.stages)
      EXPECT_EQ(program::checkBytes(*program.model, types, *program.optimizer,
                                    program.micro_batch_size, stage),
                "");
    uint64_t stashes = 0;
    for (uint32_t layer = 1; layer <= 4; ++layer)
      stashes += static_cast<uint64_t>(
          program::layerCost(*program.model, sizes.samples, layer).stashBytes);
    const uint64_t needed = bytesToMeasure(4, sizes);
    EXPECT_LE(stashes, needed / 2);
    EXPECT_LT(needed, last);
    last = needed;
  }
}

// One rank on each GPU. The messages go over NCCL, which also computes the
// sums.
TEST_F(CalibrateGpus, OfOneRankEach) {
  const Calibration found = calibrate(2, /*transportAllReduce=*/true);
  expectSpeedsAndTimes(found);
  EXPECT_EQ(found.hosts.ranksOnDevice, 1u);
  EXPECT_EQ(found.hosts.memory, kGiB);
  const std::string text = machineText(found, "threads, on GPUs");
  EXPECT_NE(text.find("// Times are of the GPUs' queues"), std::string::npos)
      << text;
  EXPECT_NE(text.find("devices(2) memory(1024 MiB)"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("share"), std::string::npos) << text;
  EXPECT_EQ(text.find("node_"), std::string::npos) << text;
}

// Both ranks share a GPU. The messages are copies between the ranks.
TEST_F(CalibrateGpus, ThatRanksShare) {
  const Calibration found = calibrate(1, /*transportAllReduce=*/false);
  expectSpeedsAndTimes(found);
  EXPECT_EQ(found.hosts.ranksOnDevice, 2u);
  // The second rank to open the GPU may find some of its memory in use.
  EXPECT_LE(found.hosts.memory, kGiB / 2);
  EXPECT_GE(found.hosts.memory, kGiB * 2 / 5);
  const std::string text = machineText(found, "threads, on GPUs");
  EXPECT_NE(text.find("// Up to 2 ranks share a GPU: "), std::string::npos)
      << text;
  EXPECT_EQ(text.find("node_"), std::string::npos) << text;
}

TEST_F(CalibrateGpus, EndsAllRanksWhereOneFails) {
  const std::unique_ptr<Accelerator> accelerator =
      makeCudaAccelerator({.stagesOnHost = true}, {});
  CalibrationSetup use;
  use.setThreads = [](uint32_t) {};
  use.timeout = 30s;
  use.accelerator = accelerator.get();
  test::failCall("cudaEventElapsedTime", cudaErrorIllegalAddress);
  try {
    calibrateOnThreads(2, use);
    FAIL() << "no failure";
  } catch (const std::exception &error) {
    EXPECT_NE(std::string(error.what()).find("cudaEventElapsedTime"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(CalibrateGpus, TimesAreThoseOfTheQueue) {
  const std::unique_ptr<Accelerator> accelerator =
      makeCudaAccelerator({.stagesOnHost = true}, {});
  const std::unique_ptr<Device> device = accelerator->makeDevice(0, 0);
  MeasuredQueue queue(*device, 30s);
  EXPECT_FALSE(queue.isSynchronous());
  static constexpr int64_t kLong = 100'000'000;
  auto sleep = [](const AddressMap &) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(kLong));
  };
  EXPECT_GE(queue.timeOccupiedBy([&] { queue.get().launch({}, sleep); }),
            kLong);
  // The queue passes the point after the host has recorded it.
  test::holdStreams(true);
  queue.get().launch({}, [](const AddressMap &) {});
  const Moment moment = queue.recordPoint();
  const int64_t released = steadyNanoseconds();
  test::holdStreams(false);
  EXPECT_LE(moment.byHost, released);
  EXPECT_GE(queue.timeOf(moment), released);
}
} // namespace
