//===- InterpreterTest.cpp - The interpreter's calls to its channels ------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/Interpreter.h"

#include "runtime/device/Host.h"
#include "runtime/interpreter/Communication.h"
#include "runtime/model/ExactStage.h"
#include "test/runtime/Timeouts.h"
#include "test/runtime/program/AsynchronousPrograms.h"
#include "test/runtime/program/SamplePrograms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace chimera;
using namespace chimera::runtime;

namespace {
/// The channels of a rank without other ranks. Its messages are lost, and
/// receives leave the memory unchanged.
class Alone final : public Channels {
public:
  Alone(uint32_t self, uint32_t size) : self(self), size(size) {}

  uint32_t rank() const override { return self; }
  uint32_t ranks() const override { return size; }
  std::unique_ptr<Request> postSend(uint32_t, ConstBytes, Event) override {
    return call();
  }
  std::unique_ptr<Request> postReceive(uint32_t, Bytes, Event) override {
    return call();
  }
  std::unique_ptr<Request> startAllReduce(const ReduceGroup &, ElementType,
                                          std::vector<ConstBytes>, Bytes,
                                          Event) override {
    return call();
  }
  void wait(Queue &, std::unique_ptr<Request>,
            std::chrono::milliseconds) override {
    computes = false;
    std::this_thread::sleep_for(pause);
  }
  void abort(const std::string &) override {}
  void beginComputing() override { computes = true; }

  /// Whether the interpreter has called beginComputing after its last post or
  /// wait.
  bool computes = false;
  std::chrono::milliseconds pause{0}; ///< the duration of each wait

private:
  std::unique_ptr<Request> call() {
    computes = false;
    return std::make_unique<Request>();
  }

  const uint32_t self, size;
};

/// Calls `look` before each computation of a stage.
class Watched : public Stage {
public:
  Watched(std::unique_ptr<Stage> stage, std::function<void()> look)
      : stage(std::move(stage)), look(std::move(look)) {}

  ElementType weightType() const override { return stage->weightType(); }
  ElementType lossType() const override { return stage->lossType(); }
  void initialize(Bytes weights, Bytes optimizerState) override {
    stage->initialize(weights, optimizerState);
  }
  std::unique_ptr<Stash> forward(MicroBatch microBatch, ConstBytes input,
                                 ConstBytes labels, ConstBytes weights,
                                 Bytes output, ForwardMode mode) override {
    look();
    return stage->forward(microBatch, input, labels, weights, output, mode);
  }
  void backward(MicroBatch microBatch, std::unique_ptr<Stash> stash,
                Bytes outputGradient, ConstBytes weights, Bytes weightGradient,
                Bytes inputGradient, WgradMode mode) override {
    look();
    stage->backward(microBatch, std::move(stash), outputGradient, weights,
                    weightGradient, inputGradient, mode);
  }
  std::unique_ptr<Stash> inputGradient(MicroBatch microBatch,
                                       std::unique_ptr<Stash> stash,
                                       Bytes outputGradient, ConstBytes weights,
                                       Bytes inputGradient) override {
    look();
    return stage->inputGradient(microBatch, std::move(stash), outputGradient,
                                weights, inputGradient);
  }
  void weightGradient(MicroBatch microBatch, std::unique_ptr<Stash> stash,
                      ConstBytes weights, Bytes weightGradient,
                      WgradMode mode) override {
    look();
    stage->weightGradient(microBatch, std::move(stash), weights, weightGradient,
                          mode);
  }
  void squaredNorm(ConstBytes gradientSum, Bytes squaredNorm) override {
    look();
    stage->squaredNorm(gradientSum, squaredNorm);
  }
  void optimizerStep(const Update &update, ConstBytes gradientSum,
                     Bytes weights, Bytes optimizerState, Bytes halted,
                     ConstBytes squaredNorm) override {
    look();
    stage->optimizerStep(update, gradientSum, weights, optimizerState, halted,
                         squaredNorm);
  }

private:
  const std::unique_ptr<Stage> stage;
  const std::function<void()> look;
};

// The interpreter must tell its channels before a stage computes. Otherwise
// nothing would move messages over MPI during the computation.
TEST(Interpreter, PreparesItsTransportBeforeStagesCompute) {
  for (bool splitBackward : {false, true}) {
    program::ProgramT program = program::samplePipeline(
        {.workers = 2,
         .splitBackward = splitBackward,
         .firstBackwardOverwrites = splitBackward,
         .recompute = program::SampleOptions::Recompute::All});
    std::vector<ReduceGroup> groups = communicationOf(program).groups;
    std::unique_ptr<Device> device = makeHostDevice();
    for (uint32_t rank : {0, 1}) {
      Alone channels(rank, 2);
      int calls = 0;
      SyntheticData data(program.seed);
      Status status{};
      Interpreter interpreter(
          program, groups,
          [&](const program::ProgramT &program, uint32_t stage) {
            return std::make_unique<Watched>(makeExactStage(program, stage),
                                             [&] {
                                               EXPECT_TRUE(channels.computes);
                                               ++calls;
                                             });
          },
          data, *device, channels, status, {});
      interpreter.run(2, [](uint64_t, std::optional<Loss>) {});
      // For each of 8 micro-batches, the stage computes a forward, a recompute,
      // and a backward or its two halves. In each step, it also computes one
      // update.
      EXPECT_EQ(calls, 2 * (8 * (splitBackward ? 4 : 3) + 1));
    }
  }
}

/// Synthetic data. Keeps the addresses that it has filled.
class Filled final : public DataSource {
public:
  void load(program::ValueKind kind, MicroBatch microBatch,
            Bytes output) override {
    SyntheticData(1).load(kind, microBatch, output);
    std::lock_guard lock(mutex);
    addresses.insert(output.data());
  }
  std::mutex mutex;
  std::set<const std::byte *> addresses;
};

/// Calls `look` with the address of the input of each forward.
class WatchedInput final : public Watched {
public:
  WatchedInput(std::unique_ptr<Stage> stage,
               std::function<void(const std::byte *)> look)
      : Watched(std::move(stage), [] {}), look(std::move(look)) {}
  std::unique_ptr<Stash> forward(MicroBatch microBatch, ConstBytes input,
                                 ConstBytes labels, ConstBytes weights,
                                 Bytes output, ForwardMode mode) override {
    look(input.data());
    return Watched::forward(microBatch, input, labels, weights, output, mode);
  }

private:
  const std::function<void(const std::byte *)> look;
};

// A rank does not copy samples that were read ahead: its stages read them from
// the memory that the data source has filled.
TEST(Interpreter, ExchangesMemoryForSamples) {
  const program::ProgramT program = program::samplePipeline({.workers = 2});
  const std::vector<ReduceGroup> groups = communicationOf(program).groups;
  const std::unique_ptr<Device> device = makeHostDevice();
  Alone channels(0, 2);
  Filled data;
  int forwards = 0;
  Status status{};
  Interpreter interpreter(
      program, groups,
      [&](const program::ProgramT &program, uint32_t stage) {
        return std::make_unique<WatchedInput>(
            makeExactStage(program, stage), [&](const std::byte *input) {
              ++forwards;
              std::lock_guard lock(data.mutex);
              EXPECT_TRUE(data.addresses.contains(input));
            });
      },
      data, *device, channels, status, {.readAhead = 2});
  interpreter.run(5, [](uint64_t, std::optional<Loss>) {});
  EXPECT_EQ(forwards, 5 * 8);
  // Memory of the arena and of two steps of loads.
  EXPECT_LE(data.addresses.size(), 8u + 2 * 8u);
}

// The first step waits and does not compute. The second one computes and does
// not wait. On a busy machine, other times of a step may be long, too. So the
// test tries longer waits and computations, too.
TEST(Interpreter, MeasuresTheShareOfAStepInWhichItWaited) {
  const program::ProgramT program = program::samplePipeline({.workers = 2});
  const std::vector<ReduceGroup> groups = communicationOf(program).groups;
  const std::unique_ptr<Device> device = makeHostDevice();
  auto faultOf = [&](uint32_t rank,
                     std::chrono::milliseconds pause) -> std::string {
    Alone channels(rank, 2);
    channels.pause = pause;
    std::chrono::milliseconds computing{0};
    SyntheticData data(program.seed);
    Status status{};
    Interpreter interpreter(
        program, groups,
        [&](const program::ProgramT &program, uint32_t stage) {
          return std::make_unique<Watched>(makeExactStage(program, stage), [&] {
            std::this_thread::sleep_for(computing);
          });
        },
        data, *device, channels, status, {});
    EXPECT_FALSE(interpreter.waitingShare());
    std::vector<double> shares;
    interpreter.run(2, [&](uint64_t, std::optional<Loss>) {
      shares.push_back(interpreter.waitingShare().value());
      std::swap(channels.pause, computing);
    });
    if (shares.size() != 2)
      return "expected two steps";
    EXPECT_LE(shares[0], 1);
    EXPECT_GT(shares[1], 0);
    if (shares[0] > 0.7 && shares[1] < 0.3)
      return "";
    return "expected more than 0.7 and less than 0.3, got " +
           std::to_string(shares[0]) + " and " + std::to_string(shares[1]);
  };
  for (uint32_t rank : {0, 1})
    test::retryUntilSuccess(
        std::chrono::milliseconds(3),
        [&](std::chrono::milliseconds pause) { return faultOf(rank, pause); });
}

/// The weights of a rank after two calls of `run`, of which the first one is
/// stopped early.
std::vector<std::byte> weightsAfterStop(const program::ProgramT &program,
                                        uint32_t rank, uint32_t readAhead) {
  const std::vector<ReduceGroup> groups = communicationOf(program).groups;
  const std::unique_ptr<Device> device = makeHostDevice();
  Alone channels(rank, static_cast<uint32_t>(program.workers.size()));
  SyntheticData data(program.seed);
  Status status{};
  Interpreter::Options options;
  options.readAhead = readAhead;
  options.steps = 100;
  options.mayBeginStep = [](uint64_t step) { return step != 4; };
  Interpreter interpreter(program, groups, makeExactStage, data, *device,
                          channels, status, options);
  for (uint64_t steps : {10, 3})
    interpreter.run(steps, [](uint64_t, std::optional<Loss>) {});
  EXPECT_LT(interpreter.stepsRun(), 10u);
  std::vector<std::byte> weights;
  for (const auto &[key, bytes] : interpreter.weights())
    weights.insert(weights.end(), bytes.get().begin(), bytes.get().end());
  return weights;
}

// Without a flush, a run that is stopped goes on otherwise than planned.
TEST(Interpreter, ReadsAheadAlsoIfARunIsStopped) {
  std::vector<program::ProgramT> programs;
  programs.push_back(program::samplePipeline({.workers = 2}));
  for (auto updates :
       {program::Updates::EachStep, program::Updates::EachMicroBatch})
    programs.push_back(program::sampleAsynchronous(
        {.workers = 2, .microBatches = 4}, updates));
  for (const program::ProgramT &program : programs)
    for (uint32_t rank : {0, 1}) {
      const std::vector<std::byte> plain = weightsAfterStop(program, rank, 0);
      EXPECT_FALSE(plain.empty());
      EXPECT_EQ(weightsAfterStop(program, rank, 1), plain);
      EXPECT_EQ(weightsAfterStop(program, rank, 2), plain);
    }
}

struct Growing final : MemoryMeter {
  int64_t currentBytes() const override { return bytes; }
  int64_t bytes = 0;
};

// When a stage computes for the first time, a library allocates memory and
// keeps it. This memory must not count as stashes, but all later growth must.
TEST(Interpreter, DoesNotCountLibraryMemoryAsStashes) {
  program::ProgramT program = program::samplePipeline({.workers = 2});
  std::vector<ReduceGroup> groups = communicationOf(program).groups;
  std::unique_ptr<Device> device = makeHostDevice();
  Alone channels(0, 2);
  SyntheticData data(program.seed);
  Status status{};
  Growing meter;
  Interpreter::Options options;
  options.meter = &meter;
  Interpreter interpreter(
      program, groups,
      [&](const program::ProgramT &program, uint32_t stage) {
        return std::make_unique<Watched>(makeExactStage(program, stage), [&] {
          meter.bytes += meter.bytes == 0 ? 1000 : 10;
        });
      },
      data, *device, channels, status, options);
  interpreter.warmUp();
  EXPECT_EQ(meter.bytes,
            1000 + 15 * 10); // forwards and backwards of 8 micro-batches
  EXPECT_EQ(interpreter.peakStashBytes(), 0u);
  interpreter.warmUp();
  EXPECT_EQ(interpreter.peakStashBytes(), 16 * 10u);
}

/// Like a stage on a GPU. Records the modes of forwards and the flags of
/// updates. Updates change nothing.
class Recording final : public Watched {
public:
  Recording(std::unique_ptr<Stage> stage, std::set<ForwardMode> &modes,
            std::vector<int32_t> &flags)
      : Watched(std::move(stage), [] {}), modes(modes), flags(flags) {}

  bool needsErrorFlag() const override { return true; }
  std::unique_ptr<Stash> forward(MicroBatch microBatch, ConstBytes input,
                                 ConstBytes labels, ConstBytes weights,
                                 Bytes output, ForwardMode mode) override {
    modes.insert(mode);
    return Watched::forward(microBatch, input, labels, weights, output, mode);
  }
  void optimizerStep(const Update &, ConstBytes, Bytes, Bytes, Bytes halted,
                     ConstBytes) override {
    ASSERT_EQ(halted.size(), kFlagBytes);
    std::memcpy(&flags.emplace_back(), halted.data(), kFlagBytes);
  }

private:
  std::set<ForwardMode> &modes;
  std::vector<int32_t> &flags;
};

// A library must load nothing later than in the warm-up.
TEST(Interpreter, WarmsUpUpdatesAndEvaluations) {
  program::ProgramT program = program::samplePipeline({.workers = 2});
  std::vector<ReduceGroup> groups = communicationOf(program).groups;
  std::unique_ptr<Device> device = makeHostDevice();
  Alone channels(0, 2);
  SyntheticData data(program.seed);
  for (bool evaluates : {false, true}) {
    Status status{};
    std::set<ForwardMode> modes;
    std::vector<int32_t> flags;
    Interpreter::Options options;
    if (evaluates)
      options.evaluation = {.data = &data, .passes = 2, .hasAccuracy = true};
    Interpreter interpreter(
        program, groups,
        [&](const program::ProgramT &program, uint32_t stage) {
          return std::make_unique<Recording>(makeExactStage(program, stage),
                                             modes, flags);
        },
        data, *device, channels, status, options);
    interpreter.warmUp();
    // The flag of each replica's update says that updates have halted.
    EXPECT_EQ(flags,
              std::vector<int32_t>(program.workers[0]->states.size(), 1));
    for (ForwardMode mode : {ForwardMode::Evaluation, ForwardMode::Accuracy})
      EXPECT_EQ(modes.contains(mode), evaluates);
  }
}

/// Finds an error in each step from `firstStep` on, as a stage on a GPU does.
class Flagging final : public Watched {
public:
  Flagging(std::unique_ptr<Stage> stage, uint64_t firstStep)
      : Watched(std::move(stage), [] {}), firstStep(firstStep) {}

  bool needsErrorFlag() const override { return true; }
  void setErrorFlag(Bytes bytes) override {
    ASSERT_EQ(bytes.size(), kFlagBytes);
    flag = bytes.data();
    int32_t value = 0;
    std::memcpy(&value, flag, sizeof value);
    EXPECT_EQ(value, 0);
  }
  std::string errorMessage(int32_t value) const override {
    return "found " + std::to_string(value);
  }
  std::unique_ptr<Stash> forward(MicroBatch microBatch, ConstBytes input,
                                 ConstBytes labels, ConstBytes weights,
                                 Bytes output, ForwardMode mode) override {
    const int32_t value = 7;
    if (microBatch.step >= firstStep)
      std::memcpy(flag, &value, sizeof value);
    return Watched::forward(microBatch, input, labels, weights, output, mode);
  }

private:
  const uint64_t firstStep;
  std::byte *flag = nullptr;
};

// A stage on a GPU writes an error to memory of the GPU. The step in which it
// does so must end the run with this error.
TEST(Interpreter, ThrowsTheErrorsThatStagesWriteToTheirDevice) {
  const program::ProgramT program = program::samplePipeline({.workers = 2});
  const std::vector<ReduceGroup> groups = communicationOf(program).groups;
  for (const uint64_t firstStep : {0, 2, 5}) {
    const std::unique_ptr<Device> device = makeHostDevice();
    Alone channels(1, 2);
    SyntheticData data(program.seed);
    Status status{};
    Interpreter interpreter(
        program, groups,
        [&](const program::ProgramT &program, uint32_t stage) {
          return std::make_unique<Flagging>(makeExactStage(program, stage),
                                            firstStep);
        },
        data, *device, channels, status, {});
    uint64_t steps = 0;
    std::string message;
    try {
      interpreter.run(5, [&](uint64_t, std::optional<Loss>) { ++steps; });
    } catch (const std::runtime_error &error) {
      message = error.what();
    }
    EXPECT_EQ(steps, std::min<uint64_t>(firstStep, 5));
    EXPECT_EQ(message, firstStep < 5 ? "step " + std::to_string(firstStep + 1) +
                                           ", stage 1: found 7"
                                     : "");
  }
}

} // namespace
