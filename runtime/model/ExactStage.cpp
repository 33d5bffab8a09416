//===- ExactStage.cpp - Stages in integer arithmetic ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/ExactStage.h"

#include "runtime/random/Mix.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;

namespace {
/// The purpose of a hash. Each hash includes its purpose, so that no two
/// results of an action are equal.
enum Use : uint64_t {
  kWeights = 1,
  kState,
  kForward,
  kOutput,
  kBackward,
  kInputGradient,
  kWeightGradient,
  kStep,
  kTiedWeights,
  kTiedGradient,
  kTiedStep,
  kNorm
};

/// Replaces each word by `update(number, word)`.
template <typename Update> void eachWord(Bytes bytes, Update update) {
  for (size_t at = 0; at < bytes.size(); at += 8) {
    size_t size = std::min<size_t>(8, bytes.size() - at);
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, size);
    word = update(at / 8, word);
    std::memcpy(bytes.data() + at, &word, size);
  }
}

void fill(Bytes bytes, uint64_t hash, Use use) {
  eachWord(bytes, [&](uint64_t i, uint64_t) { return mix({hash, use, i}); });
}

/// The number of the micro-batch. If it has several parts, the number also
/// depends on the part.
uint64_t numberOf(MicroBatch microBatch) {
  return microBatch.parts == 1
             ? microBatch.index
             : mix({microBatch.index, microBatch.part, microBatch.parts});
}

/// The hash of everything that the forward, or the input gradient, read.
struct ExactStash final : Stash {
  ExactStash(uint64_t hash, Use madeBy) : hash(hash), madeBy(madeBy) {}
  uint64_t hash;
  Use madeBy;
};

class ExactStage final : public Stage {
public:
  ExactStage(const program::ProgramT &program, uint32_t stage)
      : seed(program.seed), stage(stage) {
    std::optional<uint64_t> offset =
        program::offsetOfTiedParameters(program, stage);
    if (!offset)
      return;
    tied = {*offset, program.tied->bytes()};
  }

  ElementType weightType() const override { return ElementType::UInt64; }
  ElementType lossType() const override { return ElementType::UInt64; }

  void initialize(Bytes weights, Bytes optimizerState) override {
    eachWordOfRest(weights, [&](uint64_t i, uint64_t) {
      return mix({mix({seed, stage}), kWeights, i});
    });
    fill(slice(weights, tied), mix({seed}), kTiedWeights);
    fill(optimizerState, mix({seed, stage}), kState);
  }

  std::unique_ptr<Stash> forward(MicroBatch microBatch, ConstBytes input,
                                 ConstBytes labels, ConstBytes weights,
                                 Bytes output, ForwardMode mode) override {
    uint64_t hash = mix({kForward, stage, microBatch.step, numberOf(microBatch),
                         digestOf(input), digestOf(labels), digestOf(weights)});
    fill(output, hash, kOutput);
    if (!makesStash(mode))
      return nullptr;
    return std::make_unique<ExactStash>(hash, kForward);
  }

  void backward(MicroBatch microBatch, std::unique_ptr<Stash> stash,
                Bytes outputGradient, ConstBytes weights, Bytes weightGradient,
                Bytes inputGradient, WgradMode mode) override {
    stash = this->inputGradient(microBatch, std::move(stash), outputGradient,
                                weights, inputGradient);
    this->weightGradient(microBatch, std::move(stash), weights, weightGradient,
                         mode);
  }

  std::unique_ptr<Stash> inputGradient(MicroBatch microBatch,
                                       std::unique_ptr<Stash> stash,
                                       Bytes outputGradient, ConstBytes weights,
                                       Bytes inputGradient) override {
    uint64_t hash = mix({kBackward, stage, microBatch.step,
                         numberOf(microBatch), open(std::move(stash), kForward),
                         digestOf(outputGradient), digestOf(weights)});
    fill(inputGradient, hash, kInputGradient);
    return std::make_unique<ExactStash>(hash, kBackward);
  }

  void weightGradient(MicroBatch microBatch, std::unique_ptr<Stash> stash,
                      ConstBytes weights, Bytes weightGradient,
                      WgradMode mode) override {
    uint64_t hash =
        mix({kWeightGradient, stage, microBatch.step, numberOf(microBatch),
             open(std::move(stash), kBackward), digestOf(weights)});
    const uint64_t kept = mode == WgradMode::Add ? ~uint64_t(0) : 0;
    eachWordOfRest(weightGradient, [&](uint64_t i, uint64_t before) {
      return (before & kept) + mix({hash, i});
    });
    eachWord(slice(weightGradient, tied), [&](uint64_t i, uint64_t before) {
      return (before & kept) + mix({hash, kTiedGradient, i});
    });
  }

  /// Instead of squares, adds hashes of the words.
  void squaredNorm(ConstBytes gradientSum, Bytes squaredNorm) override {
    uint64_t sum = 0;
    for (size_t at = 0; at < gradientSum.size(); at += 8) {
      uint64_t word = 0;
      std::memcpy(&word, gradientSum.data() + at,
                  std::min<size_t>(8, gradientSum.size() - at));
      sum += mix({kNorm, word});
    }
    std::memcpy(squaredNorm.data(), &sum, sizeof sum);
  }

  void optimizerStep(const Update &now, ConstBytes gradientSum, Bytes weights,
                     Bytes optimizerState, Bytes,
                     ConstBytes squaredNorm) override {
    uint64_t numbers =
        mix({now.number, std::bit_cast<uint64_t>(now.learningRate),
             std::bit_cast<uint64_t>(now.scale)});
    if (!squaredNorm.empty())
      numbers = mix({numbers, std::bit_cast<uint64_t>(now.clipNorm),
                     digestOf(squaredNorm)});
    uint64_t hash = mix({kStep, stage, numbers, digestOf(gradientSum),
                         digestOf(optimizerState)});
    eachWordOfRest(weights, [&](uint64_t i, uint64_t word) {
      return mix({hash, kWeights, i, word});
    });
    uint64_t tiedHash =
        mix({kTiedStep, numbers, digestOf(slice(gradientSum, tied))});
    eachWord(slice(weights, tied), [&](uint64_t i, uint64_t word) {
      return mix({tiedHash, i, word});
    });
    eachWord(optimizerState, [&](uint64_t i, uint64_t word) {
      return mix({hash, kState, i, word});
    });
  }

private:
  /// A byte range of weights or of a weight gradient.
  struct Part {
    uint64_t begin, bytes;
  };
  /// The part's bytes that lie within `bytes`.
  template <typename Range> static Range slice(Range bytes, Part part) {
    uint64_t begin = std::min<uint64_t>(part.begin, bytes.size());
    return bytes.subspan(begin, std::min(part.bytes, bytes.size() - begin));
  }

  /// Calls `update` for each word except the tied parameters.
  template <typename Update>
  void eachWordOfRest(Bytes bytes, Update update) const {
    const Bytes before = slice(bytes, {0, tied.begin});
    const Bytes after = slice(bytes, {tied.begin + tied.bytes, UINT64_MAX});
    const uint64_t words = (before.size() + 7) / 8;
    eachWord(before, update);
    eachWord(after, [&](uint64_t i, uint64_t word) {
      return update(words + i, word);
    });
  }

  static uint64_t open(std::unique_ptr<Stash> stash, Use madeBy) {
    auto *exact = dynamic_cast<ExactStash *>(stash.get());
    if (!exact || exact->madeBy != madeBy)
      throw std::logic_error(
          std::string("expected the stash of ") +
          (madeBy == kForward ? "a forward" : "an input gradient") +
          (exact ? ", got that of another action" : ", got none"));
    return exact->hash;
  }

  uint64_t seed;
  uint64_t stage;
  Part tied = {0, 0}; // range within the weights
};
} // namespace

std::unique_ptr<Stage>
chimera::runtime::makeExactStage(const program::ProgramT &program,
                                 uint32_t stage) {
  return std::make_unique<ExactStage>(program, stage);
}

void SyntheticData::load(program::ValueKind kind, MicroBatch microBatch,
                         Bytes output) {
  uint64_t hash = mix(
      {seed, static_cast<uint64_t>(kind), microBatch.step, microBatch.index});
  // The words of a part are a slice of the micro-batch's words.
  const uint64_t first =
      microBatch.part * ((output.size() + sizeof(hash) - 1) / sizeof(hash));
  eachWord(output, [&](uint64_t i, uint64_t) {
    return mix({hash, first + i});
  });
}
