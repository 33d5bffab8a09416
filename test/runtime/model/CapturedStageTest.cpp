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

#include <cstring>
#include <deque>
#include <random>
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

  std::unique_ptr<GraphSet> makeSet() override {
    class Set final : public GraphSet {
    public:
      explicit Set(TapeGraphs &all) : all(all) {}
      std::unique_ptr<Graph>
      capture(const std::function<void()> &calls) override {
        EXPECT_EQ(all.tape.graph, nullptr);
        ++all.captures;
        Operations operations;
        all.tape.graph = &operations;
        struct End {
          Tape &tape;
          ~End() { tape.graph = nullptr; }
        } end{all.tape};
        calls();
        return std::make_unique<TapeGraph>(std::move(operations), all.launches);
      }

    private:
      TapeGraphs &all;
    };
    ++sets;
    return std::make_unique<Set>(*this);
  }
  Bytes allocate(uint64_t bytes) override {
    EXPECT_EQ(tape.graph, nullptr) << "takes memory while it captures";
    return memory.emplace_back(bytes);
  }
  void copy(ConstBytes from, Bytes to) override {
    EXPECT_EQ(tape.graph, nullptr);
    ASSERT_LE(from.size(), to.size());
    std::memcpy(to.data(), from.data(), from.size());
  }
  void zero(Bytes bytes) override {
    std::memset(bytes.data(), 0, bytes.size());
  }

  Tape &tape;
  uint64_t captures = 0, launches = 0, sets = 0;
  std::deque<std::vector<std::byte>> memory;
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
/// operations refer to the memory of its stashes.
class TapeStage final : public Stage {
public:
  TapeStage(Tape &tape, uint64_t &calls) : tape(tape), calls(calls) {}

  ElementType weightType() const override { return ElementType::UInt64; }
  ElementType lossType() const override { return ElementType::UInt64; }
  void initialize(Bytes weights, Bytes) override { at(weights) = 3; }

  struct Saved : Stash {
    std::shared_ptr<uint64_t> value = std::make_shared<uint64_t>();
  };

  std::unique_ptr<Stash> forward(MicroBatch, ConstBytes input,
                                 ConstBytes labels, ConstBytes weights,
                                 Bytes output, ForwardMode mode) override {
    ++calls;
    isLast = !labels.empty();
    if (mode != ForwardMode::Stash)
      tape.put([=] { at(output) = at(input) * at(weights) + 1; });
    if (mode == ForwardMode::Output)
      return nullptr;
    auto saved = std::make_unique<Saved>();
    tape.put([=, value = saved->value] { *value = at(input) + 7; });
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
};

Bytes bytesOf(uint64_t &value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

/// A stage, its memory, and the stashes that are alive. There may be several.
struct Replica {
  Replica(std::unique_ptr<Stage> made) : stage(std::move(made)) {
    stage->initialize(bytesOf(weights), {});
  }

  uint64_t forward(uint64_t input, ForwardMode mode = ForwardMode::Both) {
    uint64_t output = 0;
    auto stash = stage->forward(
        {0, 0}, bytesOf(input), isLast ? bytesOf(label) : Bytes(),
        bytesOf(weights),
        mode == ForwardMode::Stash ? Bytes() : bytesOf(output), mode);
    if (stash)
      alive.push_back(std::move(stash));
    return output;
  }
  uint64_t backward(size_t which, uint64_t gradient, WgradMode mode,
                    bool split) {
    std::unique_ptr<Stash> stash = std::move(alive.at(which));
    alive.erase(alive.begin() + static_cast<ptrdiff_t>(which));
    uint64_t result = 0;
    loss = gradient;
    if (!split) {
      stage->backward({0, 0}, std::move(stash), bytesOf(loss), bytesOf(weights),
                      bytesOf(sum), bytesOf(result), mode);
      return result;
    }
    stash = stage->inputGradient({0, 0}, std::move(stash), bytesOf(loss),
                                 bytesOf(weights), bytesOf(result));
    stage->weightGradient({0, 0}, std::move(stash), bytesOf(weights),
                          bytesOf(sum), mode);
    return result;
  }

  std::unique_ptr<Stage> stage;
  uint64_t weights = 0, sum = 0, label = 0;
  uint64_t loss = 0; ///< the output gradient after the last backward
  bool isLast = false;
  std::vector<std::unique_ptr<Stash>> alive;
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
          replica->forward(use);
          replica->backward(0, 100 + use, WgradMode::Overwrite, split);
          EXPECT_EQ(replica->loss, 100 + use + (isLast ? kLoss : 0));
        }
      }
      EXPECT_GT(both.graphs->launches, 0u);
    }
}

// Runs steps with up to 4 stashes alive at a time, which are used in a random
// order. The first backward of a step overwrites the gradient sum.
TEST(CapturedStage, EqualsTheStage) {
  for (bool split : {false, true}) {
    Pair both;
    std::mt19937 random(7);
    for (uint64_t step = 0; step < 30; ++step) {
      uint64_t next = 0;
      bool begins = true;
      while (next < 9 || !both.plain.alive.empty()) {
        const size_t alive = both.plain.alive.size();
        if (next < 9 && alive < 4 && (alive == 0 || random() % 2)) {
          const uint64_t input = 100 * step + next++;
          ASSERT_EQ(both.graphed.forward(input), both.plain.forward(input));
          continue;
        }
        const size_t which = random() % alive;
        const uint64_t gradient = random();
        const WgradMode mode = begins ? WgradMode::Overwrite : WgradMode::Add;
        begins = false;
        ASSERT_EQ(both.graphed.backward(which, gradient, mode, split),
                  both.plain.backward(which, gradient, mode, split));
        ASSERT_EQ(both.graphed.sum, both.plain.sum);
      }
      for (Replica *replica : {&both.plain, &both.graphed})
        replica->stage->optimizerStep({step, 1e-3, 1}, bytesOf(replica->sum),
                                      bytesOf(replica->weights), {});
      ASSERT_EQ(both.graphed.weights, both.plain.weights);
    }
    // At most 4 stashes were alive at a time. For each of the 4, each action
    // has one graph.
    EXPECT_EQ(both.graphs->sets, 4u);
    EXPECT_EQ(both.graphs->captures, 4u * (split ? 3 : 2));
  }
}

TEST(CapturedStage, CapturesInTwoStepsAndThenLaunchesAlone) {
  Pair both;
  auto step = [&] {
    for (uint64_t input : {1, 2, 3})
      EXPECT_EQ(both.graphed.forward(input), both.plain.forward(input));
    for (uint64_t gradient : {5, 6, 7})
      EXPECT_EQ(both.graphed.backward(0, gradient, WgradMode::Add, false),
                both.plain.backward(0, gradient, WgradMode::Add, false));
    EXPECT_EQ(both.graphed.sum, both.plain.sum);
  };
  for (int i = 0; i < kGraphWarmUpRuns; ++i)
    step();
  const uint64_t calls = both.calls, captures = both.graphs->captures;
  const size_t memory = both.graphs->memory.size();
  EXPECT_EQ(captures, 6u);
  for (int i = 0; i < 5; ++i)
    step();
  EXPECT_EQ(both.calls, calls);
  EXPECT_EQ(both.graphs->captures, captures);
  EXPECT_EQ(both.graphs->memory.size(), memory);
  EXPECT_EQ(both.graphs->launches, 6u + 5 * 6);
}

// The first forward computes only the output. A later forward, the recompute,
// computes only the stash.
TEST(CapturedStage, Recomputes) {
  Pair both;
  for (uint64_t step = 0; step < 5; ++step)
    for (uint64_t input : {10 + step, 20 + step}) {
      EXPECT_EQ(both.graphed.forward(input, ForwardMode::Output),
                both.plain.forward(input, ForwardMode::Output));
      both.graphed.forward(input, ForwardMode::Stash);
      both.plain.forward(input, ForwardMode::Stash);
      EXPECT_EQ(both.graphed.backward(0, 2, WgradMode::Add, false),
                both.plain.backward(0, 2, WgradMode::Add, false));
      EXPECT_EQ(both.graphed.sum, both.plain.sum);
    }
  EXPECT_EQ(both.graphs->captures, 3u);
}

// A run that ends in the middle of a step destroys its stashes without a
// backward.
TEST(CapturedStage, StashesMayBeDropped) {
  Pair both;
  for (int i = 0; i < 4; ++i) {
    both.graphed.forward(1);
    both.graphed.forward(2);
    both.graphed.alive.clear();
  }
  EXPECT_EQ(both.graphs->sets, 2u);
}

TEST(CapturedStage, SaysWhatCannotBeCaptured) {
  struct Waits final : GraphSet {
    std::unique_ptr<Graph> capture(const std::function<void()> &) override {
      throw std::runtime_error("it waits for the device");
    }
  };
  struct NoGraphs final : GraphFactory {
    std::unique_ptr<GraphSet> makeSet() override {
      return std::make_unique<Waits>();
    }
    Bytes allocate(uint64_t bytes) override {
      return memory.emplace_back(bytes);
    }
    void copy(ConstBytes, Bytes) override {}
    void zero(Bytes) override {}
    std::deque<std::vector<std::byte>> memory;
  };
  Tape tape;
  uint64_t calls = 0;
  Replica replica(wrapWithGraphs(std::make_unique<TapeStage>(tape, calls),
                                 std::make_shared<NoGraphs>()));
  replica.forward(1);
  replica.backward(0, 1, WgradMode::Overwrite, false);
  try {
    replica.forward(1);
    FAIL();
  } catch (const std::runtime_error &error) {
    EXPECT_STREQ(error.what(),
                 "cannot capture a graph of a forward: it waits for the device "
                 "(it runs without --cuda-graphs)");
  }
}

TEST(CapturedStage, RefusesMemoryThatMoves) {
  Pair both;
  uint64_t other = 3;
  for (int i = 0; i < 3; ++i) {
    both.graphed.forward(1);
    both.graphed.backward(0, 1, WgradMode::Overwrite, false);
  }
  both.graphed.forward(1);
  uint64_t gradient = 1, result = 0;
  EXPECT_THROW(both.graphed.stage->backward(
                   {0, 0}, std::move(both.graphed.alive[0]), bytesOf(gradient),
                   bytesOf(both.graphed.weights), bytesOf(other),
                   bytesOf(result), WgradMode::Add),
               std::logic_error);
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
    EXPECT_EQ(
        graphsUnsupportedReason(program),
        dropout > 0
            ? "dropout draws different random numbers for each micro-batch"
            : "");
  }
  program.model = nullptr;
  const auto split =
      program::samplePipeline({.workers = 2, .splitBackward = true});
  EXPECT_EQ(graphsUnsupportedReason(split), "");
  std::vector<program::Instruction> &own = program.workers[0]->instructions;
  const std::vector<program::Instruction> whole = own;
  own.insert(own.end(), split.workers[0]->instructions.begin(),
             split.workers[0]->instructions.end());
  EXPECT_EQ(graphsUnsupportedReason(program),
            "some backwards of a stage are split, and others are not");
  own = whole;
  program.updates = program::Updates::EachStep;
  EXPECT_EQ(graphsUnsupportedReason(program),
            "without a flush, weights are at several addresses");
}
} // namespace
