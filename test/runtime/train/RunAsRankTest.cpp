//===- RunAsRankTest.cpp - Processes that become ranks --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/RunAsRank.h"

#include "runtime/model/ExactStage.h"
#include "runtime/train/Accelerator.h"
#include "runtime/watch/EndProcess.h"
#include "test/runtime/program/SamplePrograms.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace chimera;
using namespace chimera::runtime;
using namespace std::chrono_literals;

namespace {
/// The options of a process that is rank `rank` of two ranks, over TCP.
JobOptions rankOfTwo(uint32_t rank, uint16_t port) {
  JobOptions use;
  use.job = Job{"torchrun", rank, 2, 2,
                MasterAddress{"127.0.0.1", port, false, "test/"}};
  return use;
}

std::string faultOf(const program::ProgramT &program, const JobOptions &use) {
  try {
    checkJob(program, use);
  } catch (const std::invalid_argument &error) {
    return error.what();
  }
  return "";
}

TEST(CheckJob, WantsAsManyRanksAsTheProgramHas) {
  JobOptions use = rankOfTwo(0, 4711);
  EXPECT_EQ(faultOf(program::samplePipeline({.workers = 2}), use), "");
  std::string fault = faultOf(program::samplePipeline({.workers = 4}), use);
  EXPECT_EQ(
      fault.find("program expects 4 ranks (4 workers x 1 copy), got 2 from "
                 "torchrun: run mpirun -n 4 chimera-run"),
      0u)
      << fault;
  use.transport = JobTransport::Mpi;
  EXPECT_NE(faultOf(program::samplePipeline({.workers = 4}), use), "");
  use.job.reset();
  EXPECT_EQ(faultOf(program::samplePipeline({.workers = 1}), use), "")
      << "without a launcher MPI has one rank";
}

TEST(CheckJob, NeedsAMeetingAddressWithoutMpi) {
  program::ProgramT program = program::samplePipeline({.workers = 2});
  JobOptions use = rankOfTwo(0, 4711);
  use.job->master.reset();
  std::string fault = faultOf(program, use);
  for (const char *part :
       {"--transport tcp needs a rank and the address of rank 0: start it with "
        "torchrun, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT",
        "got RANK unset, WORLD_SIZE unset"})
    EXPECT_NE(fault.find(part), std::string::npos) << fault;
  use.transport = JobTransport::Mpi;
  EXPECT_EQ(faultOf(program, use), "");
}

TEST(TransportOf, FitsTheLauncher) {
  EXPECT_EQ(transportOf({"torchrun", 0, 2, 2}), JobTransport::Tcp);
  EXPECT_EQ(transportOf({"mpirun", 0, 2, 2}), JobTransport::Mpi);
  EXPECT_EQ(transportOf({"srun", 0, 2, 2}), JobTransport::Mpi);
}

/// Trains three steps as one of two ranks. The root calls `pause` in each step.
/// Its process ends with status 3 if its weights equal the weights of a run in
/// threads, and if onReady and onStep were called as expected. Otherwise it
/// ends with status 1.
void trainAsRank(
    uint32_t rank, uint16_t port, const std::function<void()> &pause = [] {}) {
  program::ProgramT program = program::samplePipeline({.workers = 2});
  SyntheticData data(1);
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  run.steps = 3;
  run.timeout = 100s;
  run.gatherWeights = true;
  uint32_t ready = 0, steps = 0;
  std::vector<std::byte> weights;
  run.onStep = [&](const StepEvent &) {
    ++steps;
    pause();
  };
  run.onResult = [&](const RunResult &result) { weights = result.weights; };
  HostOptions use;
  use.onReady = [&](const HostResources &share) { ready += share.ranks; };
  runAsRank(run, use, rankOfTwo(rank, port));
  if (rank != rootOf(program))
    _exit(ready + steps);
  std::vector<std::byte> ofProcesses = std::move(weights);
  run.onStep = nullptr;
  runOnHost(run, {});
  _exit(ready == 2 && steps == 3 && weights == ofProcesses ? 3 : 1);
}

/// The exit status of `child`, or -1 if it ends in another way.
int statusOf(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(RunAsRankDeathTest, TrainsWithTheOtherRanks) {
  uint16_t port = Listener().port;
  EXPECT_EXIT(
      {
        setEndProcess([](int status) { _exit(status); });
        pid_t other = fork();
        if (other == 0)
          trainAsRank(0, port);
        pid_t root = fork();
        if (root == 0)
          trainAsRank(1, port);
        _exit(10 * statusOf(other) + statusOf(root));
      },
      testing::ExitedWithCode(3), "");
}

/// Becomes rank 0 of two, and waits for rank 1, which never starts.
void waitInVain(uint16_t port, std::function<void(const std::string &)> tell) {
  setEndProcess([](int status) { _exit(status); });
  program::ProgramT program = program::samplePipeline({.workers = 2});
  SyntheticData data(1);
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  // It is long enough to make the store where the ranks meet.
  run.timeout = 5s;
  JobOptions use = rankOfTwo(0, port);
  use.onFailure = std::move(tell);
  runAsRank(run, {}, use);
}

TEST(RunAsRankDeathTest, TellsWhyItFailsAndEndsTheProcess) {
  uint16_t port = Listener().port;
  EXPECT_EXIT(waitInVain(port,
                         [](const std::string &reason) {
                           std::fprintf(stderr, "told: %s\n", reason.c_str());
                         }),
              testing::ExitedWithCode(1),
              "told: these ranks did not connect to .*: 1");
  EXPECT_EXIT(waitInVain(port, {}), testing::ExitedWithCode(1),
              ": these ranks did not connect to .*: 1");
}

/// Runs both ranks of a job of two in processes of their own. Ends with the
/// status 10 * (status of rank 1) + (status of rank 0).
[[noreturn]] void runBoth(void (*become)(uint32_t rank, uint16_t port),
                          uint16_t port) {
  setEndProcess([](int status) { _exit(status); });
  pid_t ranks[2];
  for (uint32_t rank : {0, 1}) {
    ranks[rank] = fork();
    if (ranks[rank] == 0)
      become(rank, port);
  }
  _exit(10 * statusOf(ranks[1]) + statusOf(ranks[0]));
}

/// Becomes one of two ranks. The root throws an exception before it is ready.
/// Prints the messages that the rank gets.
[[noreturn]] void doNotGetReady(uint32_t rank, uint16_t port) {
  program::ProgramT program = program::samplePipeline({.workers = 2});
  SyntheticData data(1);
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  run.timeout = 100s;
  HostOptions use;
  use.onReady = [](const HostResources &) { throw 7; };
  JobOptions job = rankOfTwo(rank, port);
  job.onFailure = [rank](const std::string &reason) {
    dprintf(STDERR_FILENO, "rank %u: %s\n", rank, reason.c_str());
  };
  runAsRank(run, use, job);
  _exit(3);
}

TEST(RunAsRankDeathTest, TellsTheOthersWhyItWasNotReady) {
  uint16_t port = Listener().port;
  const std::string reason = "an unknown error";
  EXPECT_EXIT(runBoth(doNotGetReady, port), testing::ExitedWithCode(11),
              "rank 1: " + reason);
  EXPECT_EXIT(runBoth(doNotGetReady, port), testing::ExitedWithCode(11),
              "rank 0: aborted: rank 1 failed: " + reason);
}

/// An accelerator whose device cannot be used.
class Broken final : public Accelerator {
public:
  bool wasAsked = false;

  uint32_t devices() const override { return 1; }
  std::unique_ptr<Device> makeDevice(uint32_t, uint32_t) override {
    wasAsked = true;
    throw std::runtime_error("the device is gone");
  }
  std::unique_ptr<Channels> makeChannels(Device &, Control &,
                                         std::chrono::milliseconds) override {
    return nullptr;
  }
  DevicePlacement placement() override { return {}; }
  const MemoryMeter &meter() override { throw std::logic_error("no meter"); }
  std::shared_ptr<GraphFactory> makeGraphFactory() override { return nullptr; }
};

/// Becomes one of two ranks. Ends with status 9 if a stage is made before the
/// rank's device.
[[noreturn]] void makeStagesOnADevice(uint32_t rank, uint16_t port) {
  program::ProgramT program = program::samplePipeline({.workers = 2});
  SyntheticData data(1);
  Broken accelerator;
  auto stages = [&](const program::ProgramT &whole, uint32_t stage) {
    if (!accelerator.wasAsked)
      _exit(9);
    return makeExactStage(whole, stage);
  };
  TrainingRun run{.program = program, .stages = stages, .data = data};
  run.accelerator = &accelerator;
  run.timeout = 100s;
  runAsRank(run, {}, rankOfTwo(rank, port));
  _exit(3);
}

TEST(RunAsRankDeathTest, MakesNoStageBeforeItsDevice) {
  uint16_t port = Listener().port;
  EXPECT_EXIT(runBoth(makeStagesOnADevice, port), testing::ExitedWithCode(11),
              "the device is gone");
}

/// Becomes rank 2 of four, while the other ranks were started as two ranks.
void meetTwo(uint16_t port) {
  setEndProcess([](int status) { _exit(status); });
  // The other ranks run until this process has ended.
  const pid_t self = getpid();
  for (uint32_t rank : {0, 1})
    if (fork() == 0)
      trainAsRank(rank, port, [self] {
        while (getppid() == self)
          std::this_thread::sleep_for(10ms);
      });
  program::ProgramT program = program::samplePipeline({.workers = 4});
  SyntheticData data(1);
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  run.timeout = 60s;
  JobOptions use = rankOfTwo(2, port);
  use.job->ranks = 4;
  runAsRank(run, {}, use);
}

TEST(RunAsRankDeathTest, RanksOfAnotherNumberAreRefused) {
  uint16_t port = Listener().port;
  EXPECT_EXIT(meetTwo(port), testing::ExitedWithCode(1),
              "expected 4 ranks at .*, got 2");
}

TEST(RunAsRank, ThrowsLocalErrorsBeforeTheMeeting) {
  program::ProgramT program = program::samplePipeline({.workers = 4});
  SyntheticData data(1);
  EXPECT_THROW(
      runAsRank({.program = program, .stages = makeExactStage, .data = data},
                {}, rankOfTwo(0, 4711)),
      std::invalid_argument);
}
} // namespace
