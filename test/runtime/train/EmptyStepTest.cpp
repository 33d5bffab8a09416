//===- EmptyStepTest.cpp - Steps in which no label counts -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/ExactStage.h"
#include "runtime/train/Run.h"
#include "runtime/train/Sequential.h"
#include "test/runtime/program/AsynchronousPrograms.h"
#include "test/runtime/program/SamplePrograms.h"
#include "test/runtime/train/ExactTraining.h"

#include <gtest/gtest.h>

using namespace chimera;
using namespace chimera::runtime;
using test::sequential;

namespace {

/// Synthetic data. A micro-batch has the weight 0 if `empty` returns true for
/// it, otherwise 2.
class WeighedData final : public DataSource {
public:
  explicit WeighedData(std::function<bool(MicroBatch)> empty)
      : empty(std::move(empty)) {}
  void load(program::ValueKind kind, MicroBatch microBatch,
            Bytes output) override {
    SyntheticData(1).load(kind, microBatch, output);
  }
  double lossWeight(MicroBatch microBatch) override {
    return empty(microBatch) ? 0 : 2;
  }

private:
  std::function<bool(MicroBatch)> empty;
};

bool isEmpty(MicroBatch microBatch) {
  return microBatch.step == 1 || microBatch.step == 2;
}

void expectResult(const SequentialResult &expected,
                  const program::ProgramT &program, DataSource &data,
                  uint64_t steps, std::optional<uint64_t> seed) {
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  run.steps = steps;
  run.timeout = std::chrono::seconds(30);
  run.gatherWeights = run.checkReplicas = true;
  run.onStep = [&](const StepEvent &event) {
    ASSERT_TRUE(event.loss);
    const Loss &loss = expected.losses.at(event.step);
    EXPECT_EQ(event.loss->mean, loss.mean);
    EXPECT_EQ(event.loss->hasWeight, loss.hasWeight);
  };
  bool ended = false;
  run.onResult = [&](const RunResult &result) {
    ended = true;
    EXPECT_EQ(result.weights, expected.weights);
  };
  if (seed)
    runSimulated(run, *seed);
  else
    runInProcess(run);
  EXPECT_TRUE(ended);
}

void expectNoUpdate(const program::ProgramT &program) {
  SCOPED_TRACE(program.schedule);
  WeighedData data(isEmpty);
  const SequentialResult one = sequential(program, 1, data),
                         three = sequential(program, 3, data),
                         four = sequential(program, 4, data);
  EXPECT_EQ(one.weights, three.weights);
  EXPECT_NE(three.weights, four.weights);
  for (uint64_t step = 0; step < 4; ++step) {
    EXPECT_EQ(four.losses[step].hasWeight, step == 0 || step == 3);
    EXPECT_EQ(four.losses[step].mean == 0, step == 1 || step == 2);
  }
  expectResult(three, program, data, 3, std::nullopt);
  expectResult(four, program, data, 4, std::nullopt);
  expectResult(four, program, data, 4, 7);
}

TEST(EmptyStep, HasLoss0AndUpdatesNothing) {
  for (bool split : {false, true})
    for (uint32_t copies : {1, 2})
      expectNoUpdate(program::samplePipeline({.microBatches = 4,
                                              .bidirectional = true,
                                              .splitBackward = split,
                                              .firstBackwardOverwrites = split,
                                              .dataParallel = copies}));
}

// Without a flush, steps overlap, and an update writes the new weights to other
// memory than the old weights. An empty step must still keep the values.
TEST(EmptyStep, UpdatesNothingWithoutAFlushEither) {
  for (program::Updates updates :
       {program::Updates::EachMicroBatch, program::Updates::EachStep})
    expectNoUpdate(program::sampleAsynchronous(
        {.workers = 3, .microBatches = 4}, updates));
}

TEST(EmptyStep, IsNoneIfOneMicroBatchCounts) {
  const program::ProgramT program = program::samplePipeline();
  WeighedData data([](MicroBatch microBatch) {
    return microBatch.step == 1 && microBatch.index > 0;
  });
  const SequentialResult one = sequential(program, 1, data),
                         two = sequential(program, 2, data);
  EXPECT_TRUE(two.losses[1].hasWeight);
  EXPECT_NE(one.weights, two.weights);
  expectResult(two, program, data, 2, std::nullopt);
}

} // namespace
