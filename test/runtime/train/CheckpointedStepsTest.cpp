//===- CheckpointedStepsTest.cpp - Segments and parts of checkpoints ------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/CheckpointedSteps.h"

#include "runtime/control/InProcess.h"
#include "runtime/model/ExactStage.h"
#include "test/runtime/model/checkpoint/TestFolder.h"
#include "test/runtime/program/SamplePrograms.h"
#include "test/runtime/train/Failures.h"
#include "test/runtime/train/ForwardingControl.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <fcntl.h>
#include <mutex>
#include <set>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace chimera;
using namespace chimera::runtime;

namespace {
TEST(CheckpointedSteps, SegmentsEndAtMultiplesAndAtTheEnd) {
  for (uint64_t steps : {1, 7, 12})
    for (uint64_t every : {0, 1, 3, 4, 100})
      for (uint64_t first = 0; first < steps; ++first) {
        const uint64_t end = segmentEnd(first, steps, every);
        EXPECT_GT(end, first);
        EXPECT_LE(end, steps);
        for (uint64_t step = first + 1; step < end; ++step)
          EXPECT_FALSE(every > 0 && step % every == 0);
        EXPECT_TRUE(end == steps || end % every == 0);
      }
  EXPECT_EQ(segmentEnd(5, 5, 2), 5u);
}

TEST(CheckpointedSteps, EachPartIsWrittenByOneRank) {
  for (uint32_t workers : {1u, 2u, 4u})
    for (uint32_t copies : {1u, 3u}) {
      const program::ProgramT program =
          program::samplePipeline({.workers = workers,
                                   .bidirectional = copies > 1,
                                   .dataParallel = copies});
      std::multiset<uint32_t> written;
      for (uint32_t rank = 0; rank < program::rankCount(program); ++rank)
        for (const CheckpointPart &part : checkpointParts(program, rank)) {
          written.insert(part.number);
          EXPECT_EQ(part.first, program.stages[part.number].first_layer());
          EXPECT_EQ(part.layers, program.stages[part.number].layers());
        }
      EXPECT_EQ(written.size(), program.stages.size());
      EXPECT_EQ(std::set(written.begin(), written.end()).size(),
                program.stages.size());
    }
}

TEST(CheckpointedSteps, TheCopyCountsAgainstTheCap) {
  program::ProgramT program = program::samplePipeline({.ofModel = true});
  EXPECT_EQ(checkpointMemoryError(program), ""); // there is no cap
  program::WorkerT &worker = *program.workers[1];
  const uint64_t step = std::max(worker.arena_bytes, worker.peak_bytes);
  uint64_t copy = 0;
  for (const CheckpointPart &part : checkpointParts(program, 1))
    copy += copyBytesOf(program, part);
  EXPECT_GT(copy, 0u);
  EXPECT_GE(largestCheckpointCopy(program), copy);
  worker.memory_cap = step + copy;
  EXPECT_EQ(checkpointMemoryError(program), "");
  --worker.memory_cap;
  EXPECT_EQ(checkpointMemoryError(program),
            "--checkpoint: expected a memory_cap of at least " +
                std::to_string(step + copy) + " bytes for worker 1, got " +
                std::to_string(step + copy - 1) + ": the step takes " +
                std::to_string(step) +
                ", and the copy of the state that is written takes " +
                std::to_string(copy) +
                ". Raise the memory_cap or use more stages");
}

class CheckpointedRun : public test::TestFolder {};

/// Held-out data that call a function before each micro-batch 0 is loaded.
class HeldOut final : public DataSource {
public:
  explicit HeldOut(std::function<void()> before) : before(std::move(before)) {}
  void load(program::ValueKind kind, MicroBatch microBatch,
            Bytes output) override {
    if (kind == program::ValueKind::Tokens && microBatch.index == 0)
      before();
    SyntheticData(1).load(kind, microBatch, output);
  }

private:
  const std::function<void()> before;
};

// A run that continues from the checkpoint of a step begins with the next step.
// So a step is evaluated before its checkpoint. Only the last step is evaluated
// after its checkpoint: a run that continues from there has no step left, and
// evaluates.
TEST_F(CheckpointedRun, EvaluatesAStepBeforeItsCheckpoint) {
  const program::ProgramT program = program::samplePipeline({.ofModel = true});
  const WeightNames tensorNames;
  SyntheticData data(program.seed);
  // For each evaluation, whether the checkpoint of its step has begun or, for
  // the last step, has ended.
  std::vector<std::pair<uint64_t, bool>> evaluations;
  constexpr uint64_t kSteps = 5;
  std::atomic<uint64_t> last = 0;
  HeldOut heldOut([&] {
    const uint64_t step = std::min(kSteps, 2 * (evaluations.size() + 1));
    const std::string folderName = "step-0000000" + std::to_string(step);
    auto isBegun = [&] {
      return last == step ||
             std::ranges::any_of(names(), [&](const std::string &name) {
               return name.starts_with(folderName);
             });
    };
    // A thread makes the folder of a checkpoint, perhaps a moment later.
    for (int i = 0; i < 10 && step < kSteps && !isBegun(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    evaluations.emplace_back(step, step < kSteps ? isBegun() : last == step);
  });
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  run.steps = kSteps;
  run.checkpoints = CheckpointSettings();
  run.checkpoints->folder = folder;
  run.checkpoints->every = 2;
  run.checkpoints->names = &tensorNames;
  run.onCheckpoint = [&](const CheckpointOutcome &outcome) {
    last = outcome.step;
  };
  run.evaluation = {.data = &heldOut, .passes = 1, .every = 2};
  runInProcess(run);
  EXPECT_EQ(evaluations, (std::vector<std::pair<uint64_t, bool>>{
                             {2, false}, {4, false}, {kSteps, true}}));
}

// Saving the results and evaluating may fail. The checkpoint of the last step
// is complete before them.
TEST_F(CheckpointedRun, CompletesTheLastCheckpointBeforeAnythingElse) {
  const program::ProgramT program = program::samplePipeline({.ofModel = true});
  const WeightNames tensorNames;
  SyntheticData data(program.seed);
  HeldOut heldOut([] { throw std::runtime_error("the evaluation fails"); });
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  run.steps = 3;
  run.checkpoints = CheckpointSettings();
  run.checkpoints->folder = folder;
  run.checkpoints->names = &tensorNames;
  run.evaluation = {.data = &heldOut, .passes = 1};
  std::vector<std::string> events;
  run.onCheckpoint = [&](const CheckpointOutcome &outcome) {
    events.push_back("checkpoint " + std::to_string(outcome.step));
  };
  run.onResult = [&](const RunResult &) { events.push_back("result"); };
  const std::string report = test::failureOf(run);
  EXPECT_NE(report.find("the evaluation fails"), std::string::npos) << report;
  EXPECT_EQ(events, (std::vector<std::string>{"checkpoint 3", "result"}));
}

// The run before may have been stopped where an evaluation was due.
TEST_F(CheckpointedRun, AResumeMakesAnEvaluationThatIsDue) {
  const program::ProgramT program = program::samplePipeline({.ofModel = true});
  SyntheticData data(program.seed);
  HeldOut heldOut([] {});
  for (const bool simulated : {false, true})
    for (uint64_t first : {0, 1, 2, 4}) {
      std::vector<uint64_t> evaluations, steps;
      TrainingRun run{
          .program = program, .stages = makeExactStage, .data = data};
      run.firstStep = first;
      run.steps = 4;
      run.onStep = [&](const StepEvent &event) { steps.push_back(event.step); };
      run.evaluation = {.data = &heldOut,
                        .passes = 1,
                        .every = 2,
                        .onResult = [&](uint64_t step, const auto &) {
                          evaluations.push_back(step);
                        }};
      if (simulated)
        runSimulated(run, /*seed=*/1);
      else
        runInProcess(run);
      EXPECT_EQ(steps.size(), 4 - first);
      std::vector<uint64_t> expected = {4};
      if (first <= 2)
        expected.insert(expected.begin(), 2);
      EXPECT_EQ(evaluations, expected) << first << " " << simulated;
    }
}

/// The control of a rank that calls a function before each receive, with the
/// sender.
class Listening final : public test::ForwardingControl {
public:
  Listening(Control &control, std::function<void(uint32_t)> before)
      : ForwardingControl(control), before(std::move(before)) {}
  void receive(uint32_t from, Bytes bytes,
               std::chrono::milliseconds timeout) override {
    before(from);
    ForwardingControl::receive(from, bytes, timeout);
  }

private:
  const std::function<void(uint32_t)> before;
};

// A rank writes to a pipe, which nobody reads until the root has heard from it
// three times. So the ranks talk to each other while one of them writes, and
// none of them waits for a message for as long as the write takes. If a rank
// fails earlier, it opens the pipe, so that no thread waits for ever.
TEST_F(CheckpointedRun, AWriteMayTakeLongerThanTheTimeout) {
  const program::ProgramT program = program::samplePipeline({.ofModel = true});
  const WeightNames tensorNames;
  SyntheticData data(program.seed);
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  run.steps = 5;
  run.timeout = std::chrono::minutes(1);
  run.checkpoints = CheckpointSettings();
  run.checkpoints->folder = folder;
  run.checkpoints->names = &tensorNames;
  std::string path;
  run.onCheckpoint = [&](const CheckpointOutcome &outcome) {
    path = outcome.path;
    EXPECT_EQ(outcome.error, "");
  };
  const uint32_t ranks = program::rankCount(program), root = rootOf(program);
  const uint32_t slow = (root + 1) % ranks;
  const size_t parts = program.stages.size();
  std::vector<std::unique_ptr<CheckpointWriter>> writers(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank)
    writers[rank] = std::make_unique<CheckpointWriter>(
        program, tensorNames, checkpointParts(program, rank),
        writerOptions(run, parts, /*nonce=*/7, rank == root));
  const std::filesystem::path partial = partialFolder(folder, run.steps, 7);
  std::filesystem::create_directory(partial);
  const std::string pipe =
      partial / partName(kModelFiles, checkpointParts(program, slow)[0].number,
                         static_cast<uint32_t>(parts), ".safetensors");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);

  const std::vector<std::unique_ptr<Control>> controls =
      makeInProcessControls(ranks);
  std::vector<std::thread> threads;
  int heard = 0;
  std::once_flag isOpened;
  std::jthread reader;
  // Opens the pipe, so that the slow rank can begin to write, and reads it
  // until all writers have ended. Neither waits for the slow rank, which may
  // have failed.
  auto readPipe = [&] {
    const int file = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    EXPECT_GE(file, 0);
    reader = std::jthread([file](const std::stop_token &stop) {
      std::array<char, 4096> bytes;
      while (!stop.stop_requested())
        if (::read(file, bytes.data(), bytes.size()) <= 0)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ::close(file);
    });
  };
  for (uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      Listening control(*controls[rank], [&, rank](uint32_t from) {
        if (rank == root && from == slow && ++heard == 3)
          std::call_once(isOpened, readPipe);
      });
      writers[rank]->begin(run.steps, "",
                           [](size_t, Bytes weights, Bytes rest) {
                             std::ranges::fill(weights, std::byte{0});
                             std::ranges::fill(rest, std::byte{0});
                           });
      EXPECT_NO_THROW(finishCheckpoint(run, control, *writers[rank]));
      // If no rank has failed, the pipe has been opened already.
      std::call_once(isOpened, readPipe);
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_GE(heard, 3);
  writers.clear(); // waits until they have ended
  reader.request_stop();
  reader.join();
  EXPECT_EQ(path, folder / "step-00000005");
}
} // namespace
