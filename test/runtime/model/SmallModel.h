//===- SmallModel.h - A small model for tests -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_MODEL_SMALLMODEL_H
#define CHIMERA_TEST_RUNTIME_MODEL_SMALLMODEL_H

#include "runtime/model/Stage.h"
#include "runtime/model/graph/GraphStage.h"
#include "runtime/model/tensors/Tensors.h"
#include "runtime/program/Fields.h"
#include "runtime/program/Optimizer.h"
#include "test/runtime/program/BuiltGpt2.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace chimera::runtime::test {

struct Sizes {
  uint32_t layers = 2, heads = 2, width = 8, context = 6, vocabulary = 11;
  double dropout = 0;
  uint32_t microBatchSize = 2;
  program::DataType type = program::DataType::Float64;
  bool tied = false;
  /// The type of activations, if it differs from `type`.
  std::optional<program::DataType> activations = {};

  program::Types types() const { return {type, activations.value_or(type)}; }
  program::SmallGpt2 gpt2() const {
    return {layers, heads, width, context, vocabulary, dropout, tied};
  }
};

/// A program with a model, an optimizer and one stage for each number in
/// `layers`, which is the stage's number of layers. The program has no workers:
/// stages do not use them.
inline program::ProgramT smallProgram(const Sizes &sizes,
                                      std::vector<uint32_t> layers = {}) {
  program::ProgramT program;
  program.model = std::make_unique<program::PackageT>(
      program::builtGpt2(sizes.gpt2(), sizes.types().activations));
  program.optimizer = std::make_unique<program::OptimizerT>();
  program.optimizer->name = "adamw";
  program.optimizer->beta1 = 0.9;
  program.optimizer->beta2 = 0.95;
  program.optimizer->epsilon = 1e-8;
  program.optimizer->weight_decay = 0.1;
  program.weight_type = sizes.types().weights;
  program.activation_type = sizes.types().activations;
  program.micro_batch_size = sizes.microBatchSize;
  program.micro_batches = 1;
  program.data_parallel = 1;
  program.seed = 42;
  uint32_t first = 0;
  for (uint32_t count : layers) {
    const int64_t elements =
        program::parameterCount(*program.model, first, count);
    const auto parameters =
        static_cast<uint64_t>(program::parameterBytes(sizes.types(), elements));
    const auto copy =
        static_cast<uint64_t>(program::copyBytes(sizes.types(), elements));
    program.stages.emplace_back(first, count, 1, 2, 1, 1, 1, 0,
                                parameters + copy, 2 * parameters, 0, 0,
                                static_cast<uint64_t>(program::boundaryBytes(
                                    *program.model, sizes.microBatchSize, 0)),
                                copy);
    first += count;
  }
  if (!layers.empty())
    if (auto tied = program::tiedParameters(*program.model, sizes.types(),
                                            layers.back()))
      program.tied = std::make_unique<program::Tied>(*tied);
  return program;
}

/// Gives the program another optimizer, and its stages the size of its state.
inline void setOptimizer(program::ProgramT &program, const char *name) {
  program.optimizer->name = name;
  for (program::Stage &stage : program.stages)
    stage.mutate_optimizer_bytes(static_cast<uint64_t>(program::optimizerBytes(
        *program.optimizer, *program.model, program::typesOf(program),
        stage.first_layer(), stage.layers())));
}

template <typename T> Bytes bytesOf(std::vector<T> &values) {
  return std::as_writable_bytes(std::span(values));
}

/// Valid tokens, which differ for different `salt`.
inline std::vector<int64_t> someTokens(const program::ProgramT &program,
                                       int64_t salt) {
  std::vector<int64_t> tokens(program.micro_batch_size *
                              program::contextOf(*program.model).value());
  for (size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<int64_t>(i * i + i / 3 + 7 * salt) %
                program::vocabularyOf(*program.model).value();
  return tokens;
}

/// All stages of a program and their memory. The stages run one after another,
/// without a pipeline. Weights have type T, activations have type A.
template <typename T, typename A = T> struct Line {
  struct Part {
    std::unique_ptr<Stage> stage;
    std::vector<T> weights, state, gradient;
    /// The activation that the stage sends, and its gradient. The last stage
    /// does not use them.
    std::vector<A> output, outputGradient;
    std::unique_ptr<Stash> stash;
  };
  /// Stages keep a reference to their program.
  std::unique_ptr<const program::ProgramT> own;
  std::vector<Part> parts;
  std::vector<int64_t> tokens, labels;
  double loss = 0;
  std::optional<program::Tied> tied;

  explicit Line(const program::ProgramT &program,
                const DevicePlacement &placement = {})
      : Line(program, [&](const program::ProgramT &whole, uint32_t stage) {
          return makeGraphStage(whole, stage, nullptr, placement);
        }) {}

  /// Makes stages with another function.
  Line(const program::ProgramT &program, const StageFactory &makeStage)
      : own(std::make_unique<program::ProgramT>(program)),
        tokens(someTokens(program, 0)), labels(someTokens(program, 1)) {
    // With several threads, such small computations take longer. They would
    // even take seconds if other processes use the cores.
    setThreads(1);
    if (program.tied)
      tied = *program.tied;
    const auto boundary = static_cast<size_t>(
        program::boundaryBytes(*program.model, program.micro_batch_size, 0));
    for (uint32_t s = 0; s < program.stages.size(); ++s) {
      Part part;
      part.stage = makeStage(*own, s);
      part.weights.resize(program.stages[s].weights_bytes() / sizeof(T));
      part.gradient.resize(program::gradientBytes(program.stages[s]) /
                           sizeof(T));
      part.state.resize(program.stages[s].optimizer_bytes() / sizeof(T));
      part.output.resize(boundary / sizeof(A));
      part.outputGradient.resize(boundary / sizeof(A));
      part.stage->initialize(bytesOf(part.weights), bytesOf(part.state));
      parts.push_back(std::move(part));
    }
  }

  double forward(MicroBatch microBatch) {
    for (size_t s = 0; s < parts.size(); ++s) {
      const bool first = s == 0, last = s + 1 == parts.size();
      ConstBytes input = first ? ConstBytes(bytesOf(tokens))
                               : ConstBytes(bytesOf(parts[s - 1].output));
      Bytes output = last ? std::as_writable_bytes(std::span(&loss, 1))
                          : bytesOf(parts[s].output);
      parts[s].stash = parts[s].stage->forward(
          microBatch, input, last ? bytesOf(labels) : Bytes(),
          bytesOf(parts[s].weights), output);
      // Overwrite the stage's input with NaN: the interpreter may reuse its
      // memory after the forward.
      if (!first)
        std::fill(parts[s - 1].output.begin(), parts[s - 1].output.end(),
                  static_cast<A>(std::nan("")));
    }
    return loss;
  }

  void backward(MicroBatch microBatch, WgradMode mode = WgradMode::Add) {
    for (size_t s = parts.size(); s-- > 0;)
      parts[s].stage->backward(microBatch, std::move(parts[s].stash),
                               gradientOfOutput(s), bytesOf(parts[s].weights),
                               bytesOf(parts[s].gradient), gradientOfInput(s),
                               mode);
  }

  /// The first half of `backward`. It leaves in `stash` the values that the
  /// second half, weightGradient, needs.
  void inputGradient(MicroBatch microBatch) {
    for (size_t s = parts.size(); s-- > 0;) {
      parts[s].stash = parts[s].stage->inputGradient(
          microBatch, std::move(parts[s].stash), gradientOfOutput(s),
          bytesOf(parts[s].weights), gradientOfInput(s));
      // Overwrite the output's gradient with NaN: the interpreter may reuse its
      // memory after the input gradient.
      std::fill(parts[s].outputGradient.begin(), parts[s].outputGradient.end(),
                static_cast<A>(std::nan("")));
    }
  }
  void weightGradient(MicroBatch microBatch, WgradMode mode = WgradMode::Add) {
    for (Part &part : parts)
      part.stage->weightGradient(microBatch, std::move(part.stash),
                                 bytesOf(part.weights), bytesOf(part.gradient),
                                 mode);
  }
  /// Fills all weight gradients with NaN, to find reads of their old values.
  void fillGradientsWithNaN() {
    for (Part &part : parts)
      std::fill(part.gradient.begin(), part.gradient.end(), std::nan(""));
  }

  /// The gradients of the output and of the input of stage `s`. The output of
  /// the last stage is the loss. The input of the first stage has no gradient.
  Bytes gradientOfOutput(size_t s) {
    return s + 1 == parts.size() ? std::as_writable_bytes(std::span(&loss, 1))
                                 : bytesOf(parts[s].outputGradient);
  }
  Bytes gradientOfInput(size_t s) {
    return s == 0 ? Bytes() : bytesOf(parts[s - 1].outputGradient);
  }

  /// The tied parameters in `member` (weights or gradients) of the first stage
  /// or, if `last`, of the last stage.
  std::span<T> tiedOf(std::vector<T> Part::*member, bool last) {
    if (!tied)
      return {};
    std::vector<T> &all = last ? parts.back().*member : parts.front().*member;
    return std::span(all).subspan(
        (last ? tied->last_offset() : tied->first_offset()) / sizeof(T),
        tied->bytes() / sizeof(T));
  }

  /// Replaces the gradients of both copies of the tied parameters by their sum.
  /// In a run, instructions do this.
  void reduceTied() {
    std::span<T> first = tiedOf(&Part::gradient, /*last=*/false);
    std::span<T> last = tiedOf(&Part::gradient, /*last=*/true);
    for (size_t i = 0; i < first.size(); ++i)
      first[i] = last[i] = first[i] + last[i];
  }

  void step(uint64_t step, double scale, double rate = 1e-3) {
    for (Part &part : parts)
      part.stage->optimizerStep({step, rate, scale}, bytesOf(part.gradient),
                                bytesOf(part.weights), bytesOf(part.state));
  }

  /// The weights or gradients of all stages, in layer order.
  std::vector<T> whole(std::vector<T> Part::*member) const {
    std::vector<T> all;
    for (const Part &part : parts)
      all.insert(all.end(), (part.*member).begin(), (part.*member).end());
    return all;
  }

  /// The model's weights or gradients, in layer order. Tied parameters occur
  /// once.
  std::vector<T> once(std::vector<T> Part::*member) const {
    std::vector<T> all = whole(member);
    if (tied) // it is the last parameter
      all.resize(all.size() - tied->bytes() / sizeof(T));
    return all;
  }
};

template <typename T>
double largestDifference(const std::vector<T> &a, const std::vector<T> &b) {
  if (a.size() != b.size())
    return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - b[i]);
    if (std::isnan(difference))
      return INFINITY;
    largest = std::max(largest, difference);
  }
  return largest;
}

/// The message with which `call` refuses its arguments.
inline std::string refusal(const std::function<void()> &call) {
  try {
    call();
  } catch (const std::invalid_argument &error) {
    return error.what();
  }
  return "(accepted)";
}

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_MODEL_SMALLMODEL_H
