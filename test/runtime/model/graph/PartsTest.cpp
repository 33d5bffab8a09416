//===- PartsTest.cpp - Parts of micro-batches, and recomputation ----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/tensors/Tensors.h"
#include "test/runtime/model/SmallModel.h"

#include <gtest/gtest.h>

#include <tuple>

namespace chimera::runtime {
namespace {

using namespace test;

constexpr MicroBatch kWhole{3, 5};

Bytes slice(Bytes bytes, uint32_t part, uint32_t parts) {
  const size_t size = bytes.size() / parts;
  return bytes.subspan(part * size, size);
}

// How the stages run one micro-batch: in how many parts, with split backwards,
// and with recomputes.
struct Way {
  uint32_t parts = 1;
  bool splitBackward = false;
  bool recompute = false;
};

struct Outcome {
  double loss = 0;
  std::vector<double> gradient;
  std::vector<double> boundaries; // activations, then their gradients

  bool operator==(const Outcome &) const = default;
};

class Runner {
public:
  Runner(const program::ProgramT &program, Way way)
      : line(program), way(way), stashes(line.parts.size()) {
    // Change the initial weights, because half of them are zero or one.
    for (auto &part : line.parts)
      for (size_t i = 0; i < part.weights.size(); ++i)
        part.weights[i] += 0.1 * std::sin(static_cast<double>(i));
  }

  Outcome run() {
    Outcome outcome;
    for (uint32_t part = 0; part < way.parts; ++part)
      for (size_t s = 0; s < line.parts.size(); ++s) {
        std::unique_ptr<Stash> stash = forward(
            s, part, way.recompute ? ForwardMode::Output : ForwardMode::Both);
        EXPECT_EQ(stash == nullptr, way.recompute);
        stashes[s].push_back(std::move(stash));
        if (isLast(s))
          outcome.loss += share;
      }
    line.loss = outcome.loss;
    for (uint32_t part = 0; part < way.parts; ++part)
      for (size_t s = line.parts.size(); s-- > 0;) {
        if (way.recompute)
          stashes[s][part] = forward(s, part, ForwardMode::Stash);
        backward(s, part);
      }
    outcome.gradient = line.whole(&Line<double>::Part::gradient);
    outcome.boundaries = line.whole(&Line<double>::Part::output);
    const std::vector<double> gradients =
        line.whole(&Line<double>::Part::outputGradient);
    outcome.boundaries.insert(outcome.boundaries.end(), gradients.begin(),
                              gradients.end());
    return outcome;
  }

private:
  bool isLast(size_t s) const { return s + 1 == line.parts.size(); }
  MicroBatch microBatch(uint32_t part) const {
    return {kWhole.step, kWhole.index, part, way.parts};
  }

  std::unique_ptr<Stash> forward(size_t s, uint32_t part, ForwardMode mode) {
    auto &own = line.parts[s];
    const Bytes input =
        s == 0 ? bytesOf(line.tokens) : bytesOf(line.parts[s - 1].output);
    Bytes output = isLast(s) ? std::as_writable_bytes(std::span(&share, 1))
                             : slice(bytesOf(own.output), part, way.parts);
    return own.stage->forward(
        microBatch(part), slice(input, part, way.parts),
        isLast(s) ? slice(bytesOf(line.labels), part, way.parts) : Bytes(),
        bytesOf(own.weights), mode == ForwardMode::Stash ? Bytes() : output,
        mode);
  }

  void backward(size_t s, uint32_t part) {
    auto &own = line.parts[s];
    const Bytes outgoing =
        isLast(s) ? line.gradientOfOutput(s)
                  : slice(line.gradientOfOutput(s), part, way.parts);
    const Bytes incoming = slice(line.gradientOfInput(s), part, way.parts);
    std::unique_ptr<Stash> stash = std::move(stashes[s][part]);
    if (!way.splitBackward)
      return own.stage->backward(microBatch(part), std::move(stash), outgoing,
                                 bytesOf(own.weights), bytesOf(own.gradient),
                                 incoming);
    stash = own.stage->inputGradient(microBatch(part), std::move(stash),
                                     outgoing, bytesOf(own.weights), incoming);
    own.stage->weightGradient(microBatch(part), std::move(stash),
                              bytesOf(own.weights), bytesOf(own.gradient));
  }

  Line<double> line;
  Way way;
  double share = 0;
  std::vector<std::vector<std::unique_ptr<Stash>>> stashes; // by stage, part
};

double largest(const std::vector<double> &values) {
  double most = 0;
  for (double value : values)
    most = std::max(most, std::abs(value));
  return most;
}

// The test parameters are the dropout, and whether the model is tied. A tied
// model has a single stage, which uses the tied matrix twice.
class PartsTest : public testing::TestWithParam<std::tuple<double, bool>> {
protected:
  static program::ProgramT make() {
    auto [dropout, tied] = GetParam();
    Sizes sizes{
        .layers = 3, .dropout = dropout, .microBatchSize = 4, .tied = tied};
    return tied ? smallProgram(sizes, {5}) : smallProgram(sizes, {2, 1, 2});
  }
  program::ProgramT program = make();
};

// This also holds with dropout: the masks of a part are the rows of the whole
// micro-batch's masks.
TEST_P(PartsTest, addUpToTheWhole) {
  for (bool split : {false, true}) {
    const Outcome whole = Runner(program, {1, split}).run();
    ASSERT_GT(largest(whole.gradient), 1e-3);
    for (uint32_t parts : {2, 4}) {
      const Outcome sum = Runner(program, {parts, split}).run();
      EXPECT_NEAR(sum.loss, whole.loss, 1e-12 * whole.loss);
      EXPECT_LE(largestDifference(sum.gradient, whole.gradient),
                1e-12 * largest(whole.gradient));
      EXPECT_LE(largestDifference(sum.boundaries, whole.boundaries),
                1e-12 * largest(whole.boundaries));
    }
  }
}

TEST_P(PartsTest, recomputingGivesTheSameBits) {
  for (uint32_t parts : {1, 2})
    for (bool split : {false, true})
      EXPECT_EQ(Runner(program, {parts, split, /*recompute=*/true}).run(),
                Runner(program, {parts, split}).run())
          << parts << " parts, split " << split;
}

INSTANTIATE_TEST_SUITE_P(DropoutAndTied, PartsTest,
                         testing::Combine(testing::Values(0.0, 0.3),
                                          testing::Bool()));

TEST(RecomputeTest, theOutputAloneKeepsNothing) {
  program::ProgramT program = smallProgram({.dropout = 0.3}, {2, 2});
  TensorMeter meter;
  Line<double> line(program);
  auto &first = line.parts[0];
  auto forward = [&](ForwardMode mode) {
    return first.stage->forward(
        kWhole, bytesOf(line.tokens), {}, bytesOf(first.weights),
        mode == ForwardMode::Stash ? Bytes() : bytesOf(first.output), mode);
  };
  // The first call also allocates memory that later calls use again.
  forward(ForwardMode::Both);
  const int64_t before = meter.currentBytes();
  EXPECT_EQ(forward(ForwardMode::Output), nullptr);
  EXPECT_EQ(meter.currentBytes(), before);
  std::unique_ptr<Stash> stash = forward(ForwardMode::Stash);
  EXPECT_GT(meter.currentBytes(), before);
}

TEST(RefusedPartsTest, areThoseThatDoNotDivide) {
  program::ProgramT program = smallProgram({.microBatchSize = 4}, {2, 2});
  Line<double> line(program);
  for (auto [part, parts] : {std::pair(0u, 3u), std::pair(2u, 2u)}) {
    try {
      line.parts[0].stage->forward({0, 0, part, parts}, bytesOf(line.tokens),
                                   {}, bytesOf(line.parts[0].weights),
                                   bytesOf(line.parts[0].output));
      FAIL() << "part " << part << " of " << parts;
    } catch (const std::invalid_argument &error) {
      EXPECT_EQ(error.what(),
                "expected a part of a micro-batch of 4 that divides it, got "
                "part " +
                    std::to_string(part) + " of " + std::to_string(parts));
    }
  }
}

} // namespace
} // namespace chimera::runtime
