//===- CapturedStageTest.cpp - Stages whose actions are graphs ------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tests CapturedStage, which captures actions as CUDA graphs, without CUDA.
// Here a queue executes functions, and a graph is a list of functions that work
// on the memory of the capture. So a graph that runs on the wrong values gives
// wrong numbers.
//
//===----------------------------------------------------------------------===//

#include "runtime/model/CapturedStage.h"

#include "test/runtime/program/BuiltGpt2.h"
#include "test/runtime/program/SamplePrograms.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

using namespace chimera;
using namespace chimera::runtime;

namespace {
using Operations = std::vector<std::function<void()>>;

/// Executes operations immediately. During a capture, records them in `graph`
/// instead.
struct Tape {
  Operations *graph = nullptr;
  void put(std::function<void()> operation) {
    if (graph)
      graph->push_back(std::move(operation));
    else
      operation();
  }
};

class TapeGraph final : public Graph {
public:
  TapeGraph(Operations operations, uint64_t &launches)
      : operations(std::move(operations)), launches(launches) {}
  void launch() override {
    ++launches;
    for (const std::function<void()> &operation : operations)
      operation();
  }

private:
  const Operations operations;
  uint64_t &launches;
};

class TapeGraphs final : public GraphFactory {
public:
  explicit TapeGraphs(Tape &tape) : tape(tape) {}

  std::unique_ptr<Graph> capture(const std::function<void()> &calls) override {
    EXPECT_EQ(tape.graph, nullptr);
    ++captures;
    Operations operations;
    tape.graph = &operations;
    struct End {
      Tape &tape;
      ~End() { tape.graph = nullptr; }
    } end{tape};
    calls();
    return std::make_unique<TapeGraph>(std::move(operations), launches);
  }
  ConstBytes number() override { return std::as_bytes(std::span(&own, 1)); }
  void setNumber(uint64_t number) override {
    EXPECT_EQ(tape.graph, nullptr);
    own = number;
  }

  Tape &tape;
  uint64_t captures = 0, launches = 0, own = 0;
};

uint64_t &at(Bytes bytes) {
  return *reinterpret_cast<uint64_t *>(bytes.data());
}
uint64_t at(ConstBytes bytes) {
  return *reinterpret_cast<const uint64_t *>(bytes.data());
}

/// A backward of a TapeStage adds this number to the loss, if the forward got
/// labels.
constexpr uint64_t kLoss = 11;

/// A stage whose activations, weights and gradients are one number each. Its
/// operations refer to the memory of its stashes. A stash depends on the step.
class TapeStage final : public Stage {
public:
  TapeStage(Tape &tape, uint64_t &calls) : tape(tape), calls(calls) {}

  ElementType weightType() const override { return ElementType::UInt64; }
  ElementType lossType() const override { return ElementType::UInt64; }
  void initialize(Bytes weights, Bytes) override { at(weights) = 3; }
  void setStepMemory(ConstBytes memory) override { step = memory; }

  struct Saved : Stash {
    std::shared_ptr<uint64_t> value = std::make_shared<uint64_t>();
  };

  std::unique_ptr<Stash> forward(MicroBatch microBatch, ConstBytes input,
                                 ConstBytes labels, ConstBytes weights,
                                 Bytes output, ForwardMode mode) override {
    ++calls;
    isLast = !labels.empty();
    if (mode != ForwardMode::Stash)
      tape.put([=] { at(output) = at(input) * at(weights) + 1; });
    if (mode == ForwardMode::Output)
      return nullptr;
    auto saved = std::make_unique<Saved>();
    tape.put([=, this, value = saved->value] {
      *value = at(input) + 7 * (step.empty() ? microBatch.step : at(step));
    });
    return saved;
  }
  void backward(MicroBatch microBatch, std::unique_ptr<Stash> stash,
                Bytes outputGradient, ConstBytes weights, Bytes weightGradient,
                Bytes inputGradient, WgradMode mode) override {
    stash = this->inputGradient(microBatch, std::move(stash), outputGradient,
                                weights, inputGradient);
    this->weightGradient(microBatch, std::move(stash), weights, weightGradient,
                         mode);
  }
  std::unique_ptr<Stash> inputGradient(MicroBatch, std::unique_ptr<Stash> stash,
                                       Bytes outputGradient, ConstBytes weights,
                                       Bytes inputGradient) override {
    ++calls;
    auto value = dynamic_cast<Saved &>(*stash).value;
    tape.put([=] {
      at(inputGradient) = at(outputGradient) * at(weights) + *value;
      *value += 5 * at(outputGradient);
    });
    if (isLast)
      tape.put([=] { at(outputGradient) += kLoss; });
    return stash;
  }
  void weightGradient(MicroBatch, std::unique_ptr<Stash> stash, ConstBytes,
                      Bytes weightGradient, WgradMode mode) override {
    ++calls;
    auto value = dynamic_cast<Saved &>(*stash).value;
    tape.put([=] {
      at(weightGradient) =
          (mode == WgradMode::Overwrite ? 0 : at(weightGradient)) + *value;
    });
  }
  void squaredNorm(ConstBytes gradientSum, Bytes squaredNorm) override {
    tape.put([=] { at(squaredNorm) = at(gradientSum) * at(gradientSum); });
  }
  void optimizerStep(const Update &update, ConstBytes gradientSum,
                     Bytes weights, Bytes, Bytes, ConstBytes) override {
    tape.put([=] { at(weights) += update.number + at(gradientSum); });
  }

  Tape &tape;
  uint64_t &calls;
  bool isLast = false;
  ConstBytes step;
};

Bytes bytesOf(uint64_t &value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

constexpr size_t kMicroBatches = 9;

/// A stage, and its memory and stashes for each micro-batch.
struct Replica {
  Replica(std::unique_ptr<Stage> made) : stage(std::move(made)) {
    stage->initialize(bytesOf(weights), {});
  }

  uint64_t forward(size_t which, uint64_t input,
                   ForwardMode mode = ForwardMode::Both) {
    Own &own = all[which];
    own.input = input;
    auto stash = stage->forward(
        {step, which}, bytesOf(own.input), isLast ? bytesOf(label) : Bytes(),
        bytesOf(weights),
        mode == ForwardMode::Stash ? Bytes() : bytesOf(own.output), mode);
    if (stash)
      own.stash = std::move(stash);
    return own.output;
  }
  uint64_t backward(size_t which, uint64_t gradient, WgradMode mode,
                    bool split) {
    Own &own = all[which];
    own.loss = gradient;
    if (!split) {
      stage->backward({step, which}, std::move(own.stash), bytesOf(own.loss),
                      bytesOf(weights), bytesOf(sum), bytesOf(own.result),
                      mode);
      return own.result;
    }
    own.stash = stage->inputGradient({step, which}, std::move(own.stash),
                                     bytesOf(own.loss), bytesOf(weights),
                                     bytesOf(own.result));
    stage->weightGradient({step, which}, std::move(own.stash), bytesOf(weights),
                          bytesOf(sum), mode);
    return own.result;
  }
  void update() {
    stage->optimizerStep({step++, 1e-3, 1}, bytesOf(sum), bytesOf(weights), {},
                         {}, {});
  }

  struct Own {
    uint64_t input = 0, output = 0, result = 0;
    uint64_t loss = 0; ///< the output gradient
    std::unique_ptr<Stash> stash;
  };
  std::unique_ptr<Stage> stage;
  uint64_t weights = 0, sum = 0, label = 0, step = 0;
  bool isLast = false;
  Own all[kMicroBatches];
};

struct Pair {
  Tape tape, plainTape;
  uint64_t calls = 0, plainCalls = 0;
  std::shared_ptr<TapeGraphs> graphs = std::make_shared<TapeGraphs>(tape);
  Replica plain{std::make_unique<TapeStage>(plainTape, plainCalls)};
  Replica graphed{
      wrapWithGraphs(std::make_unique<TapeStage>(tape, calls), graphs)};
};

// On the last stage, a backward may add to the loss that it takes.
TEST(CapturedStage, CompletesTheLoss) {
  for (bool split : {false, true})
    for (bool isLast : {false, true}) {
      Pair both;
      for (Replica *replica : {&both.plain, &both.graphed}) {
        replica->isLast = isLast;
        for (uint64_t use = 0; use < 5; ++use) {
          replica->forward(0, use);
          replica->backward(0, 100 + use, WgradMode::Overwrite, split);
          EXPECT_EQ(replica->all[0].loss, 100 + use + (isLast ? kLoss : 0));
        }
      }
      EXPECT_GT(both.graphs->launches, 0u);
    }
}

// Each step has the same actions in the same order, which is drawn: with up to
// 4 stashes alive at a time, and whole and split backwards. The first backward
// of a step overwrites the gradient sum.
TEST(CapturedStage, EqualsTheStage) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Pair both;
    uint64_t splits = 0;
    std::mt19937 values(1);
    for (uint64_t step = 0; step < 6; ++step) {
      std::mt19937 order(seed);
      std::vector<size_t> alive;
      size_t next = 0;
      WgradMode mode = WgradMode::Overwrite;
      splits = 0;
      while (next < kMicroBatches || !alive.empty()) {
        if (next < kMicroBatches && alive.size() < 4 &&
            (alive.empty() || order() % 2)) {
          const uint64_t input = values();
          ASSERT_EQ(both.graphed.forward(next, input),
                    both.plain.forward(next, input));
          alive.push_back(next++);
          continue;
        }
        const size_t place = order() % alive.size(), which = alive[place];
        alive.erase(alive.begin() + static_cast<ptrdiff_t>(place));
        const bool split = order() % 2;
        splits += split;
        const uint64_t gradient = values();
        ASSERT_EQ(both.graphed.backward(which, gradient, mode, split),
                  both.plain.backward(which, gradient, mode, split));
        ASSERT_EQ(both.graphed.sum, both.plain.sum);
        mode = WgradMode::Add;
      }
      both.graphed.update();
      both.plain.update();
      ASSERT_EQ(both.graphed.weights, both.plain.weights);
    }
    EXPECT_EQ(both.graphs->captures, 2 * kMicroBatches + splits);
  }
}

TEST(CapturedStage, CapturesInTwoStepsAndThenLaunchesAlone) {
  Pair both;
  auto step = [&] {
    for (size_t which : {0, 1, 2})
      EXPECT_EQ(both.graphed.forward(which, which + 1),
                both.plain.forward(which, which + 1));
    for (size_t which : {0, 1, 2})
      EXPECT_EQ(both.graphed.backward(which, which + 5, WgradMode::Add, false),
                both.plain.backward(which, which + 5, WgradMode::Add, false));
    EXPECT_EQ(both.graphed.sum, both.plain.sum);
    ++both.graphed.step;
    ++both.plain.step;
  };
  for (int i = 0; i < kGraphWarmUpRuns; ++i)
    step();
  const uint64_t calls = both.calls, captures = both.graphs->captures;
  EXPECT_EQ(captures, 6u);
  for (int i = 0; i < 5; ++i)
    step();
  EXPECT_EQ(both.calls, calls);
  EXPECT_EQ(both.graphs->captures, captures);
  EXPECT_EQ(both.graphs->launches, 6u + 5 * 6);
}

// The first forward computes only the output. A later forward, the recompute,
// computes only the stash.
TEST(CapturedStage, Recomputes) {
  Pair both;
  for (uint64_t step = 0; step < 5; ++step)
    for (size_t which : {0, 1}) {
      const uint64_t input = 10 * which + step;
      EXPECT_EQ(both.graphed.forward(which, input, ForwardMode::Output),
                both.plain.forward(which, input, ForwardMode::Output));
      both.graphed.forward(which, input, ForwardMode::Stash);
      both.plain.forward(which, input, ForwardMode::Stash);
      EXPECT_EQ(both.graphed.backward(which, 2, WgradMode::Add, false),
                both.plain.backward(which, 2, WgradMode::Add, false));
      EXPECT_EQ(both.graphed.sum, both.plain.sum);
    }
  EXPECT_EQ(both.graphs->captures, 6u);
}

// An evaluation runs without graphs, between steps.
TEST(CapturedStage, EvaluatesWithoutGraphs) {
  Pair both;
  for (uint64_t step = 0; step < 4; ++step) {
    EXPECT_EQ(both.graphed.forward(0, step), both.plain.forward(0, step));
    EXPECT_EQ(both.graphed.backward(0, 2, WgradMode::Overwrite, false),
              both.plain.backward(0, 2, WgradMode::Overwrite, false));
    const uint64_t captures = both.graphs->captures,
                   launches = both.graphs->launches;
    EXPECT_EQ(both.graphed.forward(1, 50 + step, ForwardMode::Evaluation),
              both.plain.forward(1, 50 + step, ForwardMode::Evaluation));
    EXPECT_EQ(both.graphs->captures, captures);
    EXPECT_EQ(both.graphs->launches, launches);
  }
}

// A run that ends in the middle of a step destroys its stashes without a
// backward.
TEST(CapturedStage, StashesMayBeDropped) {
  Pair both;
  for (int i = 0; i < 4; ++i) {
    both.graphed.forward(0, 1);
    both.graphed.forward(1, 2);
    for (Replica::Own &own : both.graphed.all)
      own.stash.reset();
  }
  EXPECT_EQ(both.graphs->captures, 2u);
}

TEST(CapturedStage, SaysWhatCannotBeCaptured) {
  struct NoGraphs final : GraphFactory {
    std::unique_ptr<Graph> capture(const std::function<void()> &) override {
      throw std::runtime_error("it waits for the device");
    }
    ConstBytes number() override { return bytesOf(own); }
    void setNumber(uint64_t) override {}
    uint64_t own = 0;
  };
  Tape tape;
  uint64_t calls = 0;
  Replica replica(wrapWithGraphs(std::make_unique<TapeStage>(tape, calls),
                                 std::make_shared<NoGraphs>()));
  replica.forward(0, 1);
  replica.backward(0, 1, WgradMode::Overwrite, false);
  try {
    replica.forward(0, 1);
    FAIL();
  } catch (const std::runtime_error &error) {
    EXPECT_STREQ(error.what(),
                 "cannot capture a graph of a forward: it waits for the device "
                 "(it runs without --cuda-graphs)");
  }
}

/// The message of the std::logic_error that `call` throws.
std::string logicErrorOf(const std::function<void()> &call) {
  try {
    call();
  } catch (const std::logic_error &error) {
    return error.what();
  }
  return "no error";
}

TEST(CapturedStage, RefusesMemoryThatMoves) {
  Pair both;
  Replica &replica = both.graphed;
  for (int i = 0; i < 3; ++i) {
    replica.forward(0, 1);
    replica.backward(0, 1, WgradMode::Overwrite, false);
  }
  replica.forward(0, 1);
  Replica::Own &own = replica.all[0];
  uint64_t other = 3;
  EXPECT_EQ(logicErrorOf([&] {
              replica.stage->backward(
                  {0, 0}, std::move(own.stash), bytesOf(own.loss),
                  bytesOf(replica.weights), bytesOf(other), bytesOf(own.result),
                  WgradMode::Overwrite);
            }),
            "expected operands at the same addresses in every step");
}

// A backward that other steps did not have would read a stash of a graph.
TEST(CapturedStage, RefusesActionsThatChange) {
  Pair both;
  Replica &replica = both.graphed;
  for (int i = 0; i < 3; ++i) {
    replica.forward(0, 1);
    replica.backward(0, 1, WgradMode::Overwrite, false);
  }
  replica.forward(0, 1);
  EXPECT_EQ(
      logicErrorOf([&] { replica.backward(0, 1, WgradMode::Add, false); }),
      "expected the same actions in every step, in the same order");
}

// A stash takes the memory of earlier ones, so another order would read wrong
// numbers.
TEST(CapturedStage, RefusesAnotherOrder) {
  Pair both;
  Replica &replica = both.graphed;
  for (int i = 0; i < 3; ++i)
    for (size_t which : {0, 1}) {
      replica.forward(which, 1);
      replica.backward(which, 1, WgradMode::Add, false);
    }
  replica.forward(0, 1);
  EXPECT_EQ(logicErrorOf([&] { replica.forward(1, 1); }),
            "expected the same actions in every step, in the same order");
}

TEST(CapturedStage, IsForProgramsWhoseActionsStayTheSame) {
  program::ProgramT program = program::samplePipeline({.workers = 2});
  EXPECT_EQ(graphsUnsupportedReason(program), "");
  for (const double dropout : {0.0, 0.1}) {
    setGpt2(program, {.layers = 1,
                      .heads = 1,
                      .width = 4,
                      .context = 2,
                      .vocabulary = 3,
                      .dropout = dropout});
    EXPECT_EQ(graphsUnsupportedReason(program),
              dropout > 0
                  ? "an attention has dropout, and a graph cannot set the "
                    "random numbers of LibTorch's kernel (other dropout is "
                    "possible)"
                  : "");
  }
  program.model = nullptr;
  program.updates = program::Updates::EachStep;
  EXPECT_EQ(graphsUnsupportedReason(program),
            "without a flush, weights are at several addresses");
}
} // namespace
