//===- SplitBackwardTest.cpp - Input gradient, then weight gradient -------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/weights/StageWeights.h"
#include "test/runtime/model/SmallModel.h"

#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>
#include <string>

namespace chimera::runtime {
namespace {

using namespace test;

// Changes the initial weights, because half of them are zero or one.
template <typename T> void disturb(Line<T> &line) {
  for (auto &part : line.parts)
    for (size_t i = 0; i < part.weights.size(); ++i)
      part.weights[i] += static_cast<T>(0.1 * std::sin(static_cast<double>(i)));
}

// The largest difference between two gradients of the whole model. A difference
// is relative to the largest element of its tensor.
template <typename T>
double relativeDifference(const program::ProgramT &program,
                          const std::vector<T> &ours,
                          const std::vector<T> &theirs) {
  const StageWeights layers(program, 0, program::layerCount(*program.model),
                            DevicePlacement());
  if (ours.size() != static_cast<size_t>(layers.elements()) ||
      theirs.size() != ours.size())
    return INFINITY;
  double worst = 0;
  for (const StageWeights::Slot &slot : layers.slots()) {
    const auto part = [&](const std::vector<T> &all) {
      auto begin = all.begin() + slot.offset;
      return std::vector<T>(begin, begin + slot.parameter.elements());
    };
    const std::vector<T> a = part(ours), b = part(theirs);
    double scale = std::numeric_limits<double>::min();
    for (T value : b)
      scale = std::max<double>(scale, std::abs(value));
    worst = std::max(worst, largestDifference(a, b) / scale);
  }
  return worst;
}

// Runs two micro-batches with whole and with split backwards, and compares the
// results. Does so for several divisions of five layers into stages. The
// weights differ from the initial weights, so that every parameter has an
// effect.
template <typename T> void compareSplit(Sizes sizes, double tolerance) {
  sizes.layers = 3;
  for (double dropout : {0.0, 0.3})
    for (auto cut : std::vector<std::vector<uint32_t>>{
             {5}, {1, 4}, {2, 3}, {4, 1}, {1, 1, 1, 1, 1}}) {
      sizes.dropout = dropout;
      program::ProgramT program = smallProgram(sizes, cut);
      Line<T> whole(program), split(program);
      disturb(whole);
      disturb(split);
      for (uint64_t index : {0, 1}) {
        EXPECT_EQ(whole.forward({0, index}), split.forward({0, index}));
        whole.backward({0, index});
        split.inputGradient({0, index});
        split.weightGradient({0, index});
        for (auto &part : split.parts)
          EXPECT_EQ(part.stash, nullptr);
      }
      whole.reduceTied();
      split.reduceTied();
      EXPECT_LE(relativeDifference(program,
                                   split.once(&Line<T>::Part::gradient),
                                   whole.once(&Line<T>::Part::gradient)),
                tolerance)
          << cut.size() << " stages, dropout " << dropout;
    }
}

TEST(SplitBackwardTest, theFirstGradientOverwritesTheSum) {
  for (bool tied : {false, true})
    for (auto cut : std::vector<std::vector<uint32_t>>{{4}, {1, 3}}) {
      program::ProgramT program = smallProgram({.tied = tied}, cut);
      Line<double> added(program), begun(program);
      begun.fillGradientsWithNaN();
      for (uint64_t index : {0, 1})
        for (Line<double> *line : {&added, &begun}) {
          line->forward({0, index});
          line->inputGradient({0, index});
          line->weightGradient({0, index}, line == &begun && index == 0
                                               ? WgradMode::Overwrite
                                               : WgradMode::Add);
        }
      EXPECT_LE(relativeDifference(program,
                                   begun.once(&Line<double>::Part::gradient),
                                   added.once(&Line<double>::Part::gradient)),
                1e-14);
    }
}

TEST(SplitBackwardTest, equalsTheWholeInFloat64) {
  compareSplit<double>({}, 1e-12);
}

TEST(SplitBackwardTest, equalsTheWholeInFloat32) {
  compareSplit<float>({.type = program::DataType::Float32}, 1e-5);
}

// If one stage has both the embedding and the head, they use the same matrix.
TEST(SplitBackwardTest, equalsTheWholeWithATiedHead) {
  compareSplit<double>({.tied = true}, 1e-12);
  compareSplit<float>({.type = program::DataType::Float32, .tied = true}, 1e-5);
}

TEST(SplitBackwardTest, equalsTheWholeAtOtherSizes) {
  compareSplit<double>({.heads = 4,
                        .width = 32,
                        .context = 40,
                        .vocabulary = 50,
                        .microBatchSize = 3},
                       1e-12);
  compareSplit<double>({.heads = 1,
                        .width = 4,
                        .context = 1,
                        .vocabulary = 3,
                        .microBatchSize = 1},
                       1e-12);
}

// The input gradient keeps a part of the incoming gradient, but must not change
// it. Its result must equal the one of the whole backward.
TEST(SplitBackwardTest, inputGradientIsTheWholes) {
  for (double dropout : {0.0, 0.3}) {
    program::ProgramT program = smallProgram({.dropout = dropout}, {1, 1, 2});
    Line<double> line(program);
    disturb(line);
    line.forward({0, 0});
    line.backward({0, 0});
    const auto into = [&](size_t s) { return line.parts[s].outputGradient; };
    const std::vector<double> first = into(0), second = into(1);
    line.forward({0, 0});
    for (size_t s : {2, 1}) {
      std::vector<double> &incoming = line.parts[s].outputGradient;
      const std::vector<double> kept = incoming;
      line.parts[s].stash = line.parts[s].stage->inputGradient(
          {0, 0}, std::move(line.parts[s].stash), line.gradientOfOutput(s),
          bytesOf(line.parts[s].weights), line.gradientOfInput(s));
      EXPECT_EQ(incoming, kept);
    }
    EXPECT_LE(largestDifference(into(1), second), 1e-15);
    EXPECT_LE(largestDifference(into(0), first), 1e-15);
  }
}

// The weight gradient is added to the values in the gradient buffer. This is
// also true for the first micro-batch: it does not overwrite the buffer.
TEST(SplitBackwardTest, weightGradientAdds) {
  program::ProgramT program = smallProgram({}, {2, 2});
  Line<double> line(program);
  disturb(line);
  line.forward({0, 0});
  line.inputGradient({0, 0});
  line.weightGradient({0, 0});
  std::vector<double> expected = line.whole(&Line<double>::Part::gradient);
  for (double &value : expected)
    value += 1;
  for (auto &part : line.parts)
    std::fill(part.gradient.begin(), part.gradient.end(), 1);
  line.forward({0, 0});
  line.inputGradient({0, 0});
  line.weightGradient({0, 0});
  EXPECT_LE(
      largestDifference(line.whole(&Line<double>::Part::gradient), expected),
      1e-14);
}

// If weight gradients are computed later, in the order of the micro-batches,
// their sums are the same.
TEST(SplitBackwardTest, weightGradientsMayWait) {
  program::ProgramT program = smallProgram({.dropout = 0.2}, {2, 2});
  Line<double> inTurn(program), late(program);
  disturb(inTurn);
  disturb(late);
  std::vector<std::vector<std::unique_ptr<Stash>>> rests;
  for (uint64_t index : {0, 1, 2}) {
    inTurn.forward({0, index});
    inTurn.inputGradient({0, index});
    inTurn.weightGradient({0, index});
    late.forward({0, index});
    late.inputGradient({0, index});
    rests.emplace_back();
    for (auto &part : late.parts)
      rests.back().push_back(std::move(part.stash));
  }
  EXPECT_EQ(
      late.whole(&Line<double>::Part::gradient),
      std::vector<double>(late.whole(&Line<double>::Part::gradient).size()));
  for (uint64_t index : {0, 1, 2}) {
    for (size_t s = 0; s < late.parts.size(); ++s)
      late.parts[s].stash = std::move(rests[index][s]);
    late.weightGradient({0, index});
  }
  EXPECT_EQ(inTurn.whole(&Line<double>::Part::gradient),
            late.whole(&Line<double>::Part::gradient));
}

TEST(SplitBackwardTest, wholeAndSplitInOneStep) {
  program::ProgramT program = smallProgram({}, {2, 2});
  Line<double> whole(program), mixed(program);
  for (uint64_t index : {0, 1}) {
    whole.forward({0, index});
    whole.backward({0, index});
  }
  mixed.forward({0, 0});
  mixed.inputGradient({0, 0});
  mixed.weightGradient({0, 0});
  mixed.forward({0, 1});
  mixed.backward({0, 1});
  EXPECT_LE(relativeDifference(program,
                               mixed.whole(&Line<double>::Part::gradient),
                               whole.whole(&Line<double>::Part::gradient)),
            1e-12);
}

// How often each LibTorch operation runs during `call` on this thread.
std::map<std::string, int> operations(const std::function<void()> &call) {
  static thread_local std::map<std::string, int> *counts;
  std::map<std::string, int> result;
  counts = &result;
  at::CallbackHandle handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback([](const at::RecordFunction &function)
                                     -> std::unique_ptr<at::ObserverContext> {
        ++(*counts)[function.name()];
        return nullptr;
      }));
  call();
  at::removeCallback(handle);
  return result;
}

int products(std::map<std::string, int> counts) {
  return counts["aten::mm"] + counts["aten::addmm"] + counts["aten::addmm_"];
}

// The input gradient computes no product, reduction or scatter for the gradient
// of a parameter. Of the operations of the whole backward, exactly these are
// missing.
TEST(SplitBackwardTest, inputGradientComputesNoWeightGradient) {
  program::ProgramT program = smallProgram({}, {1, 2, 1});
  Line<double> line(program);
  const MicroBatch microBatch{0, 0};
  // For each stage: the numbers of linear layers, of reductions for the
  // gradients of biases and positions, and of scatters for embeddings.
  const struct {
    int linears, biases, embeddings;
  } expected[] = {{0, 1, 1}, {8, 8, 0}, {1, 0, 0}};
  for (bool split : {false, true}) {
    line.forward(microBatch);
    for (size_t s = 3; s-- > 0;) {
      auto &part = line.parts[s];
      auto [linears, biases, embeddings] = expected[s];
      if (!split) {
        auto counts = operations([&] {
          part.stage->backward(microBatch, std::move(part.stash),
                               line.gradientOfOutput(s), bytesOf(part.weights),
                               bytesOf(part.gradient), line.gradientOfInput(s));
        });
        EXPECT_EQ(products(counts), 2 * linears);
        EXPECT_EQ(counts["aten::sum"], biases);
        EXPECT_EQ(counts["aten::embedding_dense_backward"], embeddings);
        continue;
      }
      auto counts = operations([&] {
        part.stash = part.stage->inputGradient(
            microBatch, std::move(part.stash), line.gradientOfOutput(s),
            bytesOf(part.weights), line.gradientOfInput(s));
      });
      EXPECT_EQ(products(counts), linears);
      EXPECT_EQ(counts["aten::sum"], 0);
      EXPECT_EQ(counts["aten::embedding_dense_backward"], 0);
      counts = operations([&] {
        part.stage->weightGradient(microBatch, std::move(part.stash),
                                   bytesOf(part.weights),
                                   bytesOf(part.gradient));
      });
      EXPECT_EQ(products(counts), linears);
      EXPECT_EQ(counts["aten::embedding_dense_backward"], embeddings);
    }
  }
}

TEST(SplitBackwardTest, refusesTheOtherHalfsStash) {
  program::ProgramT program = smallProgram({}, {4});
  Line<double> line(program);
  line.forward({0, 0});
  EXPECT_EQ(refusal([&] {
              line.weightGradient({0, 0});
            }),
            "expected the stash of an input gradient of this stage over the "
            "same weights, got another");
  line.forward({0, 0});
  line.inputGradient({0, 0});
  EXPECT_EQ(refusal([&] {
              line.inputGradient({0, 0});
            }),
            "expected the stash of a forward of this stage over the same "
            "weights, got another");
  line.forward({0, 0});
  line.inputGradient({0, 0});
  EXPECT_NE(refusal([&] {
              line.backward({0, 0});
            }).find("of a forward"),
            std::string::npos);
  // The first call has consumed the stash, so a second call must fail.
  EXPECT_NE(refusal([&] {
              line.weightGradient({0, 0});
            }).find("expected"),
            std::string::npos);
}

TEST(SplitBackwardTest, refusesBytesOfTheWrongSize) {
  program::ProgramT program = smallProgram({}, {2, 2});
  Line<double> line(program);
  auto &part = line.parts[1];
  line.forward({0, 0});
  EXPECT_EQ(refusal([&] {
              part.stage->inputGradient({0, 0}, std::move(part.stash),
                                        line.gradientOfOutput(1),
                                        bytesOf(part.weights), Bytes());
            }),
            "expected 768 bytes of input gradient, got 0");
  line.forward({0, 0});
  line.inputGradient({0, 0});
  EXPECT_NE(refusal([&] {
              part.stage->weightGradient({0, 0}, std::move(part.stash),
                                         bytesOf(part.weights), Bytes());
            }).find("bytes of weight gradient, got 0"),
            std::string::npos);
}

} // namespace
} // namespace chimera::runtime
