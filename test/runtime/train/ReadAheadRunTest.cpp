//===- ReadAheadRunTest.cpp - Runs that read samples ahead ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/PlannedLoads.h"
#include "runtime/model/ExactStage.h"
#include "runtime/train/Run.h"
#include "test/runtime/program/AsynchronousPrograms.h"
#include "test/runtime/program/SamplePrograms.h"
#include "test/runtime/train/Failures.h"

#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <thread>

using namespace chimera;
using namespace chimera::runtime;

namespace {
/// Synthetic data. Counts the loads by ranks and those by other threads.
class Counted final : public DataSource {
public:
  void load(program::ValueKind kind, MicroBatch microBatch,
            Bytes output) override {
    std::lock_guard lock(mutex);
    const bool isRank = ranks.contains(std::this_thread::get_id());
    ++(isRank ? byRanks : byThreads);
    if (failsAt == microBatch.step && kind == program::ValueKind::Tokens)
      throw std::runtime_error("the disk is gone");
    SyntheticData(1).load(kind, microBatch, output);
  }
  /// Must be called by each rank's thread.
  void addRank() {
    std::lock_guard lock(mutex);
    ranks.insert(std::this_thread::get_id());
  }

  std::mutex mutex;
  std::set<std::thread::id> ranks;
  int byRanks = 0, byThreads = 0;
  uint64_t failsAt = UINT64_MAX;
};

TrainingRun runOf(const program::ProgramT &program, Counted &data,
                  uint32_t readAhead) {
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  run.steps = 6;
  run.readAhead = readAhead;
  run.gatherWeights = true;
  run.onThread = [&] { data.addRank(); };
  return run;
}

std::vector<std::byte> weightsOf(TrainingRun run) {
  std::vector<std::byte> weights;
  run.onResult = [&](const RunResult &result) { weights = result.weights; };
  runInProcess(run);
  return weights;
}

std::vector<program::ProgramT> programs() {
  std::vector<program::ProgramT> programs;
  programs.push_back(program::samplePipeline());
  programs.push_back(
      program::samplePipeline({.workers = 2, .dataParallel = 2}));
  for (auto updates :
       {program::Updates::EachStep, program::Updates::EachMicroBatch})
    programs.push_back(program::sampleAsynchronous(
        {.workers = 3, .microBatches = 4}, updates));
  return programs;
}

TEST(ReadAheadRun, HasTheSameWeights) {
  for (const program::ProgramT &program : programs()) {
    Counted plain, ahead, far;
    const std::vector<std::byte> expected = weightsOf(runOf(program, plain, 0));
    EXPECT_EQ(plain.byThreads, 0);
    EXPECT_EQ(weightsOf(runOf(program, ahead, 1)), expected);
    EXPECT_EQ(weightsOf(runOf(program, far, 2)), expected);
    // All loads are planned, so the ranks load nothing themselves.
    EXPECT_EQ(far.byRanks, 0) << program.schedule;
    EXPECT_EQ(far.byThreads, plain.byRanks) << program.schedule;
  }
}

TEST(ReadAheadRun, AnErrorIsOfTheStepThatNeedsTheData) {
  program::ProgramT program = program::samplePipeline({.workers = 2});
  Counted data;
  data.failsAt = 4;
  TrainingRun run = runOf(program, data, 2);
  const std::string report = test::failureOf(run);
  for (const char *part : {"failed: the disk is gone", "step 5, instruction ",
                           "load tokens pipeline 0 stage 0 micro-batch 0"})
    EXPECT_NE(report.find(part), std::string::npos) << report << part;
}

TEST(ReadAheadRun, MemoryIsThatOfTheLoadsOfAStep) {
  const program::ProgramT program = program::samplePipeline({.workers = 2});
  const auto bytes = [&](uint32_t worker, uint32_t steps) {
    return readAheadBytes(program, *program.workers[worker], steps);
  };
  EXPECT_GT(bytes(0, 1), 0u); // tokens
  EXPECT_GT(bytes(1, 1), 0u); // labels
  EXPECT_EQ(bytes(0, 2), 2 * bytes(0, 1));
  EXPECT_EQ(bytes(0, 0), 0u);
  const program::ProgramT longer = program::samplePipeline({.workers = 3});
  EXPECT_EQ(readAheadBytes(longer, *longer.workers[1], 2), 0u);
}

TEST(ReadAheadRun, ReadsAsFarAheadAsMemoryAllows) {
  program::ProgramT program = program::samplePipeline({.workers = 2});
  program::WorkerT &worker = *program.workers[0];
  const uint64_t step = readAheadBytes(program, worker, 1),
                 taken = std::max(worker.arena_bytes, worker.peak_bytes);
  EXPECT_EQ(stepsThatFit(program, worker, 0, 2), 2u); // without a cap
  for (uint64_t fitting : {0, 1, 2}) {
    worker.memory_cap = taken + 100 + fitting * step;
    EXPECT_EQ(stepsThatFit(program, worker, 100, 2), fitting);
    EXPECT_EQ(stepsThatFit(program, worker, 101, 2), fitting - (fitting > 0));
  }
  Counted files;
  TrainingRun run = runOf(program, files, 2);
  worker.memory_cap = taken + step;
  EXPECT_EQ(readAheadOf(run, 0), 1u);
  EXPECT_EQ(readAheadOf(run, 1), 2u);
  EXPECT_EQ(readAheadBytesOf(run)[0], step);
}
} // namespace
