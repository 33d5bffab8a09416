//===- ExactStageTest.cpp - Stages in integer arithmetic ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/ExactStage.h"

#include "test/runtime/program/SamplePrograms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

using namespace chimera;
using namespace chimera::runtime;

namespace {
using Words = std::vector<uint64_t>;

ConstBytes in(const Words &words) { return std::as_bytes(std::span(words)); }
Bytes out(Words &words) { return std::as_writable_bytes(std::span(words)); }

/// The operands of one forward and backward on a middle stage.
struct Operands {
  MicroBatch microBatch{3, 5};
  Words input{1, 2, 3};
  Words weights{10, 20};
  Words outputGradient{7, 8, 9};

  struct Results {
    Words output, inputGradient, weightGradient;
    bool operator==(const Results &) const = default;
  };

  Results run(bool split = false, uint32_t number = 1) const {
    auto stage = makeExactStage(program::samplePipeline(), number);
    Results results{Words(3), Words(3), Words{100, 200}};
    Words gradient = outputGradient;
    auto stash = stage->forward(microBatch, in(input), {}, in(weights),
                                out(results.output));
    if (split) {
      stash = stage->inputGradient(microBatch, std::move(stash), out(gradient),
                                   in(weights), out(results.inputGradient));
      stage->weightGradient(microBatch, std::move(stash), in(weights),
                            out(results.weightGradient));
    } else {
      stage->backward(microBatch, std::move(stash), out(gradient), in(weights),
                      out(results.weightGradient), out(results.inputGradient));
    }
    return results;
  }
};

TEST(ExactStage, IsAFunctionOfItsOperands) {
  EXPECT_EQ(Operands().run(), Operands().run());
  EXPECT_EQ(Operands().run(), Operands().run(true)) << "split backward";
}

TEST(ExactStage, EveryOperandChangesAllLaterResults) {
  Operands::Results right = Operands().run();
  auto expectOther = [&](const Operands &operands, bool forwardToo,
                         const char *what) {
    Operands::Results other = operands.run();
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(other.output[i] != right.output[i], forwardToo) << what;
      EXPECT_NE(other.inputGradient[i], right.inputGradient[i]) << what;
    }
    for (size_t i = 0; i < 2; ++i)
      EXPECT_NE(other.weightGradient[i], right.weightGradient[i]) << what;
  };
  Operands operands;
  operands.input[2] ^= 1;
  expectOther(operands, true, "input");
  operands = {};
  operands.weights[0] ^= uint64_t(1) << 63;
  expectOther(operands, true, "weights");
  operands = {};
  std::swap(operands.input[0], operands.input[1]);
  expectOther(operands, true, "order of words");
  operands = {};
  operands.microBatch.index = 6;
  expectOther(operands, true, "micro-batch");
  operands = {};
  operands.microBatch.step = 4;
  expectOther(operands, true, "step");
  operands = {};
  operands.microBatch = {3, 5, 0, 2};
  expectOther(operands, true, "part");
  operands = {};
  operands.outputGradient[1] ^= 4;
  expectOther(operands, false, "output gradient");
  EXPECT_NE(Operands().run(false, 2).output, right.output) << "stage";
}

TEST(ExactStage, PartsOfAMicroBatchDiffer) {
  Operands first, second, ofFour;
  first.microBatch = {3, 5, 0, 2};
  second.microBatch = {3, 5, 1, 2};
  ofFour.microBatch = {3, 5, 1, 4};
  EXPECT_NE(first.run().output, second.run().output);
  EXPECT_NE(first.run().weightGradient, second.run().weightGradient);
  EXPECT_NE(second.run().output, ofFour.run().output);
  EXPECT_EQ(second.run(), second.run(true)) << "split backward";
}

TEST(ExactStage, ARecomputedStashIsTheSame) {
  Operands operands;
  auto stage = makeExactStage(program::samplePipeline(), 1);
  Operands::Results results{Words(3), Words(3), Words{100, 200}};
  EXPECT_EQ(stage->forward(operands.microBatch, in(operands.input), {},
                           in(operands.weights), out(results.output),
                           ForwardMode::Output),
            nullptr);
  auto stash = stage->forward(operands.microBatch, in(operands.input), {},
                              in(operands.weights), {}, ForwardMode::Stash);
  stage->backward(operands.microBatch, std::move(stash),
                  out(operands.outputGradient), in(operands.weights),
                  out(results.weightGradient), out(results.inputGradient));
  EXPECT_EQ(results, operands.run());
}

TEST(ExactStage, BackwardReadsTheWeightsItIsGiven) {
  auto stage = makeExactStage(program::samplePipeline(), 1);
  Words input{1}, weights{2}, newer{3}, output(1), gradient(1), incoming{4};
  auto backward = [&](const Words &version) {
    Words sum{0};
    auto stash = stage->forward({}, in(input), {}, in(weights), out(output));
    stage->backward({}, std::move(stash), out(incoming), in(version), out(sum),
                    out(gradient));
    return sum;
  };
  EXPECT_NE(backward(weights), backward(newer));
}

TEST(ExactStage, GradientsAddUp) {
  Operands operands;
  Operands::Results once = operands.run();
  auto stage = makeExactStage(program::samplePipeline(), 1);
  Words sum{100, 200}, output(3), gradient(3);
  for (int i = 0; i < 2; ++i)
    stage->backward(operands.microBatch,
                    stage->forward(operands.microBatch, in(operands.input), {},
                                   in(operands.weights), out(output)),
                    out(operands.outputGradient), in(operands.weights),
                    out(sum), out(gradient));
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(sum[i] - once.weightGradient[i],
              once.weightGradient[i] - (i ? 200 : 100));
}

TEST(ExactStage, TheFirstGradientOverwritesTheSum) {
  Operands operands;
  auto stage = makeExactStage(program::samplePipeline(), 1);
  Words sum{0, 0}, begun{100, 200}, output(3), gradient(3);
  for (Words *each : {&sum, &begun})
    stage->backward(operands.microBatch,
                    stage->forward(operands.microBatch, in(operands.input), {},
                                   in(operands.weights), out(output)),
                    out(operands.outputGradient), in(operands.weights),
                    out(*each), out(gradient),
                    each == &begun ? WgradMode::Overwrite : WgradMode::Add);
  EXPECT_EQ(begun, sum);
}

TEST(ExactStage, StashesAreCheckedForWhatTheyAre) {
  auto stage = makeExactStage(program::samplePipeline(), 1);
  Words words{1}, more{1};
  EXPECT_THROW(
      stage->backward({}, nullptr, out(words), in(words), out(more), out(more)),
      std::logic_error);
  EXPECT_THROW(stage->weightGradient(
                   {}, stage->forward({}, in(words), {}, in(words), out(more)),
                   in(words), out(more)),
               std::logic_error);
}

TEST(ExactStage, StartAndStepDependOnStageAndSeed) {
  program::ProgramT program = program::samplePipeline();
  auto start = [&](uint32_t stage) {
    Words weights(2), state(3);
    makeExactStage(program, stage)->initialize(out(weights), out(state));
    return std::pair(weights, state);
  };
  EXPECT_EQ(start(0), start(0));
  EXPECT_NE(start(0).first, start(1).first);
  auto before = start(0);
  auto step = [&](Words gradient, uint64_t number, double scale,
                  double rate = 1e-3) {
    auto [weights, state] = before;
    makeExactStage(program, 0)
        ->optimizerStep({number, rate, scale}, in(gradient), out(weights),
                        out(state));
    return std::pair(weights, state);
  };
  auto right = step({1, 2}, 0, 0.25);
  EXPECT_NE(right, before);
  EXPECT_NE(step({1, 3}, 0, 0.25), right);
  EXPECT_NE(step({1, 2}, 1, 0.25), right);
  EXPECT_NE(step({1, 2}, 0, 0.25, 2e-3), right);
  EXPECT_NE(step({1, 2}, 0, 0.125), right);
  program.seed += 1;
  EXPECT_NE(start(0).first, before.first);
}

TEST(ExactStage, BuffersMayEndInAnIncompleteWord) {
  auto stage = makeExactStage(program::samplePipeline(), 0);
  std::vector<std::byte> weights(13), state(3);
  stage->initialize(weights, state);
  std::vector<std::byte> output(5), gradient(13), tokens(6);
  auto stash = stage->forward({}, tokens, {}, weights, output);
  stage->backward({}, std::move(stash), output, weights, gradient, {});
  EXPECT_NE(std::vector(gradient.begin() + 8, gradient.end()),
            std::vector<std::byte>(5));
}

/// Four stages with 13 tied bytes. The tied bytes are at the beginning or the
/// end of the first stage's 24 bytes, and at the beginning or the end of the
/// last stage's 31 bytes.
struct TiedEnds {
  explicit TiedEnds(bool firstAtEnd = false, bool lastAtEnd = true)
      : program(program::samplePipeline()) {
    program.tied = std::make_unique<program::Tied>(firstAtEnd ? 24 - 13 : 0,
                                                   lastAtEnd ? 31 - 13 : 0, 13);
    first.resize(24);
    last.resize(31);
  }

  std::unique_ptr<Stage> stage(uint32_t number) const {
    return makeExactStage(program, number);
  }
  std::span<std::byte> tiedOf(std::vector<std::byte> &bytes) const {
    return std::span(bytes).subspan(bytes.size() == first.size()
                                        ? program.tied->first_offset()
                                        : program.tied->last_offset(),
                                    13);
  }
  std::vector<std::byte> copyOf(std::vector<std::byte> &bytes) const {
    auto tied = tiedOf(bytes);
    return {tied.begin(), tied.end()};
  }
  /// Fills `first` and `last` with the initial weights.
  void start() {
    std::vector<std::byte> state(8);
    stage(0)->initialize(first, state);
    stage(3)->initialize(last, state);
  }

  program::ProgramT program;
  std::vector<std::byte> first, last;
};

TEST(ExactStage, TiedParametersStartEqual) {
  for (bool firstAtEnd : {false, true})
    for (bool lastAtEnd : {false, true}) {
      TiedEnds ends(firstAtEnd, lastAtEnd);
      ends.start();
      EXPECT_EQ(ends.copyOf(ends.first), ends.copyOf(ends.last));
      EXPECT_NE(ends.copyOf(ends.first), std::vector<std::byte>(13));
      // All other bytes differ between the two stages. A middle stage has no
      // tied bytes.
      EXPECT_NE(ends.first[firstAtEnd ? 0 : 13], ends.last[lastAtEnd ? 0 : 13]);
      Words middle(2), untied(2), state(1);
      ends.stage(1)->initialize(out(middle), out(state));
      ends.program.tied.reset();
      ends.stage(1)->initialize(out(untied), out(state));
      EXPECT_EQ(middle, untied);
    }
}

TEST(ExactStage, TiedParametersStayEqualWithEqualSums) {
  for (bool firstAtEnd : {false, true})
    for (bool lastAtEnd : {false, true}) {
      TiedEnds ends(firstAtEnd, lastAtEnd);
      // Makes a step, with `sum` as the gradient of the tied bytes, and `rest`
      // in all other bytes of the gradients and in the states. Returns the tied
      // bytes after it, which must be equal in both stages.
      auto step = [&](std::byte sum, std::byte rest, uint64_t number = 4,
                      double scale = 0.5, double rate = 1e-3) {
        ends.start();
        for (auto [s, weights] :
             {std::pair(0u, &ends.first), std::pair(3u, &ends.last)}) {
          std::vector<std::byte> gradient(weights->size(), rest);
          std::ranges::fill(ends.tiedOf(gradient), sum);
          std::vector<std::byte> state(16, rest);
          ends.stage(s)->optimizerStep({number, rate, scale}, gradient,
                                       *weights, state);
        }
        EXPECT_EQ(ends.copyOf(ends.first), ends.copyOf(ends.last));
        return ends.copyOf(ends.first);
      };
      const auto right = step(std::byte(1), std::byte(2));
      EXPECT_EQ(step(std::byte(1), std::byte(3)), right);
      EXPECT_NE(step(std::byte(2), std::byte(2)), right);
      EXPECT_NE(step(std::byte(1), std::byte(2), 5), right);
      EXPECT_NE(step(std::byte(1), std::byte(2), 4, 0.25), right);
      EXPECT_NE(step(std::byte(1), std::byte(2), 4, 0.5, 2e-3), right);
      ends.start();
      EXPECT_NE(ends.copyOf(ends.first), right);
    }
}

TEST(ExactStage, ALostTiedContributionIsSeen) {
  TiedEnds ends;
  ends.start();
  auto update = [&](std::vector<std::byte> gradient) {
    std::vector<std::byte> weights = ends.first, state(8);
    ends.stage(0)->optimizerStep({0, 1e-3, 1}, gradient, weights, state);
    return ends.copyOf(weights);
  };
  std::vector<std::byte> right(24, std::byte(7));
  for (size_t i = 0; i < 13; ++i) {
    std::vector<std::byte> other = right;
    other[i] = std::byte(6);
    EXPECT_NE(update(other), update(right)) << "byte " << i;
  }
}

// A gradient buffer has a tied piece and the rest. Gradients of several
// micro-batches are added as 64-bit integers in each piece separately. The
// first integer of a piece begins where the piece begins.
TEST(ExactStage, TiedGradientsAddUpApartFromTheRest) {
  for (bool atEnd : {false, true}) {
    TiedEnds ends(atEnd);
    ends.start();
    auto add = [&](uint64_t index, std::vector<std::byte> &gradient) {
      std::vector<std::byte> output(8), tokens(8);
      auto stash =
          ends.stage(0)->forward({0, index}, tokens, {}, ends.first, output);
      ends.stage(0)->backward({0, index}, std::move(stash), output, ends.first,
                              gradient, {});
    };
    // The sum of 40 micro-batches overflows every integer. The carry of a piece
    // must not reach the next piece.
    std::vector<std::byte> all(24), sum(24);
    for (uint64_t index = 0; index < 40; ++index) {
      std::vector<std::byte> one(24);
      add(index, one);
      add(index, all);
      const size_t cut = atEnd ? 11 : 13;
      for (auto [begin, end] : {std::pair(size_t(0), cut), {cut, size_t(24)}})
        for (size_t at = begin; at < end; at += 8) {
          size_t size = std::min<size_t>(8, end - at);
          uint64_t left = 0, right = 0;
          std::memcpy(&left, &sum[at], size);
          std::memcpy(&right, &one[at], size);
          left += right;
          std::memcpy(&sum[at], &left, size);
        }
      EXPECT_EQ(all, sum) << "micro-batch " << index;
    }
  }
}

TEST(SyntheticData, IsAFunctionOfKindMicroBatchAndSeed) {
  auto load = [](uint64_t seed, program::ValueKind kind, MicroBatch m) {
    Words words(4);
    SyntheticData(seed).load(kind, m, out(words));
    return words;
  };
  Words right = load(1, program::ValueKind::Tokens, {2, 3});
  EXPECT_EQ(right, load(1, program::ValueKind::Tokens, {2, 3}));
  EXPECT_NE(right, load(2, program::ValueKind::Tokens, {2, 3}));
  EXPECT_NE(right, load(1, program::ValueKind::Labels, {2, 3}));
  EXPECT_NE(right, load(1, program::ValueKind::Tokens, {3, 3}));
  EXPECT_NE(right, load(1, program::ValueKind::Tokens, {2, 4}));
}
} // namespace
