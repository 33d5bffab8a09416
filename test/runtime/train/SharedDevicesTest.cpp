//===- SharedDevicesTest.cpp - Ranks that share GPUs ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/control/InProcess.h"
#include "runtime/model/ExactStage.h"
#include "runtime/train/RunOnHost.h"
#include "test/runtime/train/Failures.h"
#include "test/runtime/train/ForwardingControl.h"
#include "test/runtime/train/OnGpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

using namespace chimera;
using namespace chimera::runtime;
using namespace chimera::runtime::test;
using namespace std::chrono_literals;

namespace {

class SharedGpus : public OnGpus {};

// If ranks share a GPU, it is not known which rank uses the memory.
TEST_F(SharedGpus, MemoryOfASharedGpuIsNotCounted) {
  program::ProgramT program = sample({.workers = 2});
  SyntheticData data(program.seed);
  for (int devices : {1, 2}) {
    test::setDevices(devices, 1 << 30);
    const std::unique_ptr<Accelerator> gpus = workingOnDevice();
    TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
    run.timeout = 30s;
    run.accelerator = gpus.get();
    run.onStep = [&](const StepEvent &event) {
      EXPECT_EQ(event.use.deviceBytes > 0, devices == 2);
      // Without a profile, nobody measures the waits of a GPU.
      EXPECT_EQ(event.use.measured, 0u);
    };
    run.onResult = [&](const RunResult &result) {
      for (const RankUse &rank : result.ranks)
        EXPECT_EQ(rank.deviceBytes > 0, devices == 2);
    };
    EXPECT_EQ(test::failureOf(run), "");
  }
}

/// The number of recorded calls that start with `name`.
size_t callsOf(const std::string &name) {
  return static_cast<size_t>(
      std::ranges::count_if(test::calls(), [&](const std::string &call) {
        return call.starts_with(name);
      }));
}

TEST_F(SharedGpus, ThreadsShareGpusWhereThereAreFewer) {
  program::ProgramT program = sample({.workers = 2,
                                      .microBatches = 4,
                                      .firstBackwardOverwrites = true,
                                      .dataParallel = 2});
  const Outcome expected = outcomeOf(program, nullptr);
  for (int gpus : {1, 3, 4}) {
    test::setDevices(gpus, 1 << 20);
    test::clearCalls();
    test::recordCalls(true);
    const std::unique_ptr<Accelerator> own = accelerator();
    const Outcome got = outcomeOf(program, own.get());
    test::recordCalls(false);
    EXPECT_EQ(got.weights, expected.weights) << gpus;
    EXPECT_EQ(got.gradients, expected.gradients) << gpus;
    for (const RankUse &rank : got.ranks)
      EXPECT_EQ(rank.hostBlocks, 0u) << gpus;
    // NCCL is used only if each rank has its own GPU.
    EXPECT_EQ(callsOf("ncclCommInit"), gpus == 4 ? 4u : 0u) << gpus;
  }
}

TEST_F(SharedGpus, StepsOnASharedGpuTakeNoMemory) {
  test::setDevices(1, 1 << 20);
  program::ProgramT program = sample({.workers = 2});
  const std::unique_ptr<Accelerator> gpus = accelerator();
  SyntheticData data(program.seed);
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  run.steps = 6;
  run.accelerator = gpus.get();
  run.onStep = [&](const StepEvent &event) {
    test::recordCalls(event.step < 4);
  };
  runOnHost(run, {});
  EXPECT_GT(callsOf("cudaLaunch"), 50u);
  for (const char *taking :
       {"cudaMalloc", "cudaHostAlloc", "cudaFree", "cudaStreamCreate", "nvrtc"})
    EXPECT_EQ(callsOf(taking), 0u) << taking;
}

TEST_F(SharedGpus, AFailureOfOneRankOnASharedGpuIsReported) {
  test::setDevices(1, 1 << 20);
  expectFailureIsReported();
}

TEST_F(SharedGpus, AHangingRankOnASharedGpuIsNamed) {
  test::setDevices(1, 1 << 20);
  program::ProgramT program = sample({.workers = 2});
  const std::unique_ptr<Accelerator> gpus = accelerator();
  // Delay the data of the first stage. The rank of the second stage waits for
  // its activation.
  Data data([](MicroBatch microBatch) {
    if (microBatch.step == 1 && microBatch.index == 3)
      std::this_thread::sleep_for(1s);
  });
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  run.steps = 5;
  run.timeout = 300ms;
  run.accelerator = gpus.get();
  expectContains(test::failureOf(run),
                 "failed: timed out after 0.3 s waiting for ");
}

/// The control of a rank to which messages from rank `others` and higher ranks
/// seem to come from another host, and so from other processes.
class OfOtherProcesses final : public test::ForwardingControl {
public:
  OfOtherProcesses(Control &control, uint32_t others)
      : ForwardingControl(control), others(others) {}
  void receive(uint32_t from, Bytes bytes,
               std::chrono::milliseconds timeout) override {
    ForwardingControl::receive(from, bytes, timeout);
    if (from >= others)
      // The message begins with the name of the host. Change the name.
      bytes.front() = std::byte('#');
  }

private:
  const uint32_t others;
};

// Two ranks of this process would share a GPU. The third rank is in another
// process, so sharing is refused.
TEST_F(SharedGpus, ThreadsShareNoGpuWhereThereAreOtherProcesses) {
  test::setDevices(1, 1 << 20);
  const std::unique_ptr<Accelerator> gpus = accelerator();
  std::vector<std::unique_ptr<Control>> controls = makeInProcessControls(3);
  std::vector<std::thread> threads;
  std::vector<std::string> errors(3);
  for (uint32_t rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      OfOtherProcesses control(*controls[rank], rank == 2 ? 0 : 2);
      try {
        auto device = gpus->makeDevice(0, rank);
        gpus->makeChannels(*device, control, 100s);
      } catch (const std::invalid_argument &error) {
        errors[rank] = error.what();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (uint32_t rank : {0, 1})
    expectContains(errors[rank],
                   "expected one GPU for each rank, because there are several "
                   "processes, but ranks 0 and 1 of one process are on GPU "
                   "0000:01:00.0: start one process for all ranks");
}

} // namespace
