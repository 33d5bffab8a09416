//===- AcceleratorTest.cpp - Runs on other devices than the host ----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/nccl/Channels.h"
#include "runtime/model/ExactStage.h"
#include "runtime/model/SyntheticStage.h"
#include "runtime/train/RunOnHost.h"
#include "test/runtime/Timeouts.h"
#include "test/runtime/train/Failures.h"
#include "test/runtime/train/OnGpus.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <thread>

using namespace chimera;
using namespace chimera::runtime;
using namespace chimera::runtime::test;
using namespace std::chrono_literals;

namespace {
TEST_F(OnGpus, EveryStepIsThatOfTheHost) {
  const std::unique_ptr<Accelerator> gpus = accelerator();
  using Recompute = program::SampleOptions::Recompute;
  for (const program::SampleOptions &options :
       {program::SampleOptions{.workers = 1},
        {.workers = 2, .microBatches = 5},
        {.workers = 3, .splitBackward = true, .dataParallel = 2},
        {.workers = 2,
        .microBatches = 4,
        .firstBackwardOverwrites = true,
        .backwardParts = 2,
        .recompute = Recompute::All},
        {.workers = 4, .firstBackwardOverwrites = true, .dataParallel = 2}}) {
    program::ProgramT program = sample(options);
    Outcome expected = outcomeOf(program, nullptr);
    Outcome got = outcomeOf(program, gpus.get());
    EXPECT_EQ(got.weights, expected.weights);
    EXPECT_EQ(got.gradients, expected.gradients);
    ASSERT_EQ(got.losses.size(), expected.losses.size());
    for (size_t step = 0; step < got.losses.size(); ++step)
      EXPECT_EQ(got.losses[step]->sum, expected.losses[step]->sum);
    for (const RankUse &rank : got.ranks)
      EXPECT_EQ(rank.hostBlocks, 0u);
  }
}

// The trace must have the times at which the GPUs executed the actions. The
// host only enqueues the actions, so its own times would mean nothing.
TEST_F(OnGpus, ATraceHasTheTimesOfTheGpu) {
  program::ProgramT program = sample({.workers = 2});
  const std::unique_ptr<Accelerator> gpus = accelerator();
  SyntheticData data(program.seed);
  constexpr int64_t kUnit = 1'000'000;
  TrainingRun run{.program = program,
                  .stages = makeSyntheticStages(static_cast<double>(kUnit)),
                  .data = data};
  run.steps = 3;
  run.timeout = 30s;
  run.traceSteps = 1;
  run.accelerator = gpus.get();
  std::vector<Trace> traces;
  run.onResult = [&](const RunResult &result) { traces = result.traces; };
  const int64_t begin = steadyNanoseconds();
  runInProcess(run);
  const int64_t end = steadyNanoseconds();
  ASSERT_EQ(traces.size(), 2u);
  for (size_t rank = 0; rank < traces.size(); ++rank) {
    ASSERT_EQ(traces[rank].kept().size(), 1u);
    const Trace::Section &step = traces[rank].kept()[0];
    EXPECT_EQ(step.number, 3u);
    const program::WorkerT &worker = *program.workers[rank];
    ASSERT_EQ(step.spans.size(), worker.instructions.size());
    // The times are on the host's clock, which both ranks share.
    int64_t last = begin;
    for (const Trace::Span &span : step.spans) {
      EXPECT_LE(last, span.begin);
      EXPECT_LE(span.begin, span.end);
      last = span.end;
      const program::Instruction &instruction =
          worker.instructions[span.instruction];
      if (instruction.opcode() == program::Opcode::Forward) {
        EXPECT_GE(span.end - span.begin,
                  program.stages[instruction.stage()].forward() * kUnit);
      }
    }
    EXPECT_LE(last, end);
  }
}

// The actions on the software GPU's streams sleep, but the calls of the host do
// not. So the profile must have the times of the GPU.
TEST_F(OnGpus, AProfileHasTheTimesOfTheGpu) {
  program::ProgramT program = sample({.workers = 2});
  const std::unique_ptr<Accelerator> gpus = accelerator();
  SyntheticData data(program.seed);
  // On a busy machine, rank 1 may itself be so late that it hardly waits. So
  // the test tries longer actions, too.
  test::retryUntilSuccess(
      1ms, [&](std::chrono::milliseconds unit) -> std::string {
        const int64_t kUnit = std::chrono::nanoseconds(unit).count();
        TrainingRun run{.program = program,
                        .stages =
                            makeSyntheticStages(static_cast<double>(kUnit)),
                        .data = data};
        run.steps = 3;
        run.timeout = 100s;
        run.profile = true;
        run.accelerator = gpus.get();
        std::vector<StepUse> uses;
        run.onStep = [&](const StepEvent &event) { uses.push_back(event.use); };
        nlohmann::json profile;
        run.onResult = [&](const RunResult &result) {
          profile = nlohmann::json::parse(formatProfile(
              program, result.profiles, rootOf(program),
              {.stages = "synthetic", .device = "cuda", .threads = 2},
              {0, result.steps}));
        };
        runInProcess(run);
        EXPECT_EQ(profile["steps"]["later"]["count"], 2);
        int64_t actions = 0;
        for (uint32_t stage = 0; stage < 2; ++stage) {
          const nlohmann::json &entry = profile["stages"][stage];
          const program::Stage &cost = program.stages[stage];
          // The first step does not count, but the two later steps do.
          const uint64_t count = uint64_t{2} * program.micro_batches;
          for (auto [name, units] : {std::pair("forward", cost.forward()),
                                     {"backward", cost.backward()}}) {
            EXPECT_EQ(entry[name]["count"], count) << name;
            EXPECT_GE(entry[name]["min"], units * kUnit) << name;
          }
          actions += program.micro_batches * (cost.forward() + cost.backward());
        }
        // A step includes the worker's own actions, and the waits for values of
        // other workers.
        EXPECT_GE(profile["steps"]["later"]["min"], actions / 2 * kUnit);
        EXPECT_EQ(uses.size(), 3u);
        const int64_t waited =
            profile["ranks"][1]["waits"]["receive_activation"]["max"];
        if (waited < program.stages[0].forward() * kUnit / 2)
          return "rank 1 waited only " + std::to_string(waited) + " ns";
        if (uses.size() != 3 || uses[2].measured != 2)
          return "not all ranks measured the last step";
        EXPECT_GT(uses[2].waiting, 0);
        EXPECT_LT(uses[2].waiting, 1);
        return "";
      });
}

TEST_F(OnGpus, StepsTakeNoMemory) {
  program::ProgramT program = sample({.workers = 2});
  const std::unique_ptr<Accelerator> gpus = accelerator();
  SyntheticData data(program.seed);
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  run.steps = 6;
  run.gatherGradients = true;
  run.accelerator = gpus.get();
  // onStep is called only at the root rank, when a step has ended.
  run.onStep = [&](const StepEvent &event) {
    test::recordCalls(event.step < 4);
  };
  runInProcess(run);
  size_t launches = 0;
  for (const std::string &call : test::calls()) {
    launches += call.starts_with("cudaLaunch");
    for (const char *taking : {"cudaMalloc", "cudaHostAlloc", "cudaFree",
                               "cudaStreamCreate", "ncclComm", "nvrtc"})
      EXPECT_FALSE(call.starts_with(taking)) << call;
  }
  EXPECT_GT(launches, 50u);
}

TEST_F(OnGpus, AFailureOfOneRankEndsAllAndIsReported) {
  expectFailureIsReported();
}

TEST_F(OnGpus, AHangOfAGpuIsReported) {
  program::ProgramT program = sample({.workers = 2});
  const std::unique_ptr<Accelerator> gpus = accelerator();
  std::string report = test::retryUntilMessage(
      "failed: timed out after {} waiting for the GPU to end an instruction",
      300ms, [&](std::chrono::milliseconds timeout) {
        Data data([=](MicroBatch microBatch) {
          if (microBatch.step == 1 && microBatch.index == 3)
            std::this_thread::sleep_for(test::hangOf(timeout));
        });
        TrainingRun run{
            .program = program, .stages = makeExactStage, .data = data};
        run.steps = 5;
        run.timeout = timeout;
        run.accelerator = gpus.get();
        return test::failureOf(run);
      });
  expectContains(report, "; its host has enqueued instructions up to ");
}

TEST_F(OnGpus, TooLittleMemoryIsReported) {
  test::setDevices(2, 100000);
  program::ProgramT program = sample({.workers = 2, .weightsBytes = 80000});
  const std::unique_ptr<Accelerator> gpus = accelerator();
  SyntheticData data(program.seed);
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  run.accelerator = gpus.get();
  // Use stages that compute on the GPU: stages on the host would use host
  // memory.
  const std::unique_ptr<Accelerator> own = makeCudaAccelerator({}, {});
  run.accelerator = own.get();
  std::string report = test::failureOf(run);
  expectContains(report, "bytes of the worker's memory: the GPU has no memory "
                         "left: cudaMalloc: ");
}

TEST_F(OnGpus, MemoryThatNoPlanContainsCountsAgainstTheCap) {
  program::ProgramT program = sample({.workers = 1});
  const std::unique_ptr<Accelerator> gpus = workingOnDevice();
  SyntheticData data(program.seed);
  // Imitate a library that allocates device memory when it is first used.
  constexpr size_t kLibrary = 5000;
  void *ofLibrary = nullptr;
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  run.steps = 2;
  run.timeout = 30s;
  run.accelerator = gpus.get();
  run.onThread = [&] {
    if (!ofLibrary) {
      EXPECT_EQ(cudaMalloc(&ofLibrary, kLibrary), cudaSuccess);
    }
  };
  RankUse use{};
  run.onResult = [&](const RunResult &result) { use = result.ranks[0]; };
  auto attempt = [&](uint64_t cap) {
    program.workers[0]->memory_cap = cap;
    std::string report = test::failureOf(run);
    EXPECT_EQ(cudaFree(std::exchange(ofLibrary, nullptr)), cudaSuccess);
    return report;
  };
  EXPECT_EQ(attempt(0), "");
  // `deviceBytes` includes the arena, the scratch memory of the channels and of
  // the interpreter, and the memory of the library.
  const uint64_t scratch = NcclOptions().scratchBytes;
  EXPECT_GE(use.deviceBytes, use.arenaBytes + kLibrary + scratch);
  EXPECT_LE(use.deviceBytes, use.arenaBytes + kLibrary + scratch + 1000);
  EXPECT_EQ(attempt(use.deviceBytes), "");
  std::string report = attempt(use.deviceBytes - 1);
  expectContains(report, "expected at most the memory_cap of ");
  expectContains(report, std::to_string(use.arenaBytes) + " of the arena");
}

TEST_F(OnGpus, AWarmUpRunThatFailsNamesTheInstruction) {
  program::ProgramT program = sample({.workers = 2});
  const std::unique_ptr<Accelerator> gpus = accelerator();
  Data data([](MicroBatch microBatch) {
    if (microBatch.index == 2)
      throw std::runtime_error("no memory left");
  });
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  run.accelerator = gpus.get();
  std::string report = test::failureOf(run);
  expectContains(report, "failed: in the warm-up run of instruction ");
  expectContains(report, ", load ");
  expectContains(report, " micro-batch 2: no memory left");
}

} // namespace
