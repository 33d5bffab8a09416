//===- TransformerStage.cpp - GPT-2's layers in LibTorch ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/gpt2/TransformerStage.h"

#include "runtime/model/gpt2/Gpt2.h"
#include "runtime/model/tensors/RightPredictions.h"
#include "runtime/model/tensors/TensorOver.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <type_traits>

namespace chimera::runtime {
namespace {

using at::Tensor;

// The stash of a forward: the root of autograd's graph, and its leaf, which is
// the input. The graph owns the tensors that autograd saved. The output is not
// needed, so it is not kept.
struct ForwardStash : Stash {
  Parameters parameters;
  torch::autograd::Edge root;
  Tensor input; ///< undefined on the first stage
  const std::byte *weights;
};

// The stash of an input gradient. The graph no longer exists.
struct WeightStash : Stash {
  std::vector<ParameterUse> uses;
  const std::byte *weights;
};

class TransformerStage : public Stage {
public:
  TransformerStage(const program::ProgramT &program, uint32_t first,
                   uint32_t count, const DevicePlacement &placement,
                   std::shared_ptr<const InitialValues> values)
      : placement(placement), layers(program, first, count, placement),
        values(std::move(values)), rows(program.micro_batch_size),
        context(program.model->context), width(program.model->width),
        tokenBytes(
            program::inputBytes(*program.model, program.micro_batch_size)),
        boundaryBytes(program::boundaryBytes(
            *program.model, program.micro_batch_size, /*layer=*/0)) {
    if (placement.isCuda && !placement.kernels)
      throw std::invalid_argument("expected kernels for a stage on a GPU");
    if (program.micro_batch_size == 0)
      throw std::invalid_argument("expected a micro-batch size of at least 1, "
                                  "got 0");
  }

  ElementType weightType() const override {
    return layers.weights().type() == at::kDouble ? ElementType::Float64
                                                  : ElementType::Float32;
  }
  ElementType lossType() const override { return ElementType::Float64; }

  void initialize(Bytes weights, Bytes optimizerState) override {
    layers.weights().initialize(weights, optimizerState, values.get());
  }

  std::unique_ptr<Stash> forward(MicroBatch microBatch, ConstBytes input,
                                 ConstBytes labels, ConstBytes weights,
                                 Bytes output, ForwardMode mode) override {
    expectParts(microBatch);
    const int64_t parts = microBatch.parts;
    const int64_t outputBytes =
        layers.hasHead() ? sizeof(double) : boundaryBytes / parts;
    expectBytes("input", input.size(),
                (layers.hasEmbedding() ? tokenBytes : boundaryBytes) / parts);
    expectBytes("labels", labels.size(),
                layers.hasHead() ? tokenBytes / parts : 0);
    expectBytes("weights", weights.size(), layers.weights().bytes());
    expectBytes("output", output.size(),
                mode == ForwardMode::Stash ? 0 : outputBytes);
    if (!makesStash(mode)) {
      forwardOnly(microBatch, input, labels, weights, output, mode);
      return nullptr;
    }

    at::AutoGradMode differentiable(true);
    auto stash = std::make_unique<ForwardStash>();
    stash->weights = weights.data();
    stash->parameters.all =
        layers.weights().computedTensorsOver(weights.data());

    // Clone the operands, because the caller may reuse its buffers before the
    // backward.
    Tensor x, targets;
    if (layers.hasEmbedding())
      x = tokens(input, microBatch).clone();
    else
      x = stash->input =
          activation(input, microBatch).clone().set_requires_grad(true);
    if (layers.hasHead())
      targets = tokens(labels, microBatch).clone();

    Tensor result =
        layers.run(std::move(x), targets, stash->parameters, microBatch);
    stash->root = torch::autograd::impl::gradient_edge(result);
    if (mode == ForwardMode::Both)
      write(result.detach(), microBatch, output);
    return stash;
  }

  void backward(MicroBatch microBatch, std::unique_ptr<Stash> saved,
                Bytes outputGradient, ConstBytes weights, Bytes weightGradient,
                Bytes inputGradient, WgradMode mode) override {
    expectOutputGradient(microBatch, outputGradient);
    expectBytes("weight gradient", weightGradient.size(),
                layers.weights().parameterBytes());
    expectInputGradient(microBatch, inputGradient);
    ForwardStash &stash = expectStash<ForwardStash>(saved, weights);
    stash.parameters.sums = sumsOf(weightGradient, mode);
    differentiate(stash, microBatch, outputGradient, inputGradient);
  }

  std::unique_ptr<Stash> inputGradient(MicroBatch microBatch,
                                       std::unique_ptr<Stash> saved,
                                       Bytes outputGradient, ConstBytes weights,
                                       Bytes inputGradient) override {
    expectOutputGradient(microBatch, outputGradient);
    expectInputGradient(microBatch, inputGradient);
    ForwardStash &stash = expectStash<ForwardStash>(saved, weights);

    differentiate(stash, microBatch, outputGradient, inputGradient);
    auto rest = std::make_unique<WeightStash>();
    rest->weights = stash.weights;
    rest->uses = std::move(stash.parameters.uses);
    return rest;
  }

  void weightGradient(MicroBatch, std::unique_ptr<Stash> saved,
                      ConstBytes weights, Bytes weightGradient,
                      WgradMode mode) override {
    expectBytes("weight gradient", weightGradient.size(),
                layers.weights().parameterBytes());
    WeightStash &stash = expectStash<WeightStash>(saved, weights);
    const std::vector<Tensor> parameters =
        layers.weights().computedTensorsOver(stash.weights);
    std::vector<GradientSum> sums = sumsOf(weightGradient, mode);
    for (ParameterUse &use : stash.uses) {
      addWeightGradient(use, parameters, sums);
      use = {}; // frees its tensors
    }
  }

  void squaredNorm(ConstBytes gradientSum, Bytes squaredNorm) override {
    layers.weights().squaredNorm(gradientSum, squaredNorm);
  }

  void optimizerStep(const Update &update, ConstBytes gradientSum,
                     Bytes weights, Bytes optimizerState, Bytes halted,
                     ConstBytes squaredNorm) override {
    layers.weights().update(update, gradientSum, weights, optimizerState,
                            halted, squaredNorm);
  }

private:
  std::vector<GradientSum> sumsOf(Bytes weightGradient, WgradMode mode) const {
    std::vector<GradientSum> sums;
    for (Tensor &gradient : layers.weights().tensorsOver(weightGradient.data()))
      sums.push_back({std::move(gradient), mode == WgradMode::Add});
    return sums;
  }

  // Executes the graph of `stash` and writes the input gradient. The nodes of
  // the graph add the gradients of parameters to their sums or, if there are no
  // sums, save a ParameterUse.
  void differentiate(ForwardStash &stash, MicroBatch microBatch,
                     ConstBytes outputGradient, Bytes inputGradient) const {
    // Clone the gradient: a ParameterUse may keep it, and autograd may compute
    // sums in its memory. On the CPU, autograd runs the backward in the calling
    // thread.
    torch::autograd::Engine::get_default_engine().execute(
        {stash.root}, {gradientOfOutput(microBatch, outputGradient).clone()},
        /*keep_graph=*/false, /*create_graph=*/false, /*accumulate_grad=*/true);
    if (!layers.hasEmbedding())
      activation(inputGradient, microBatch).copy_(stash.input.grad());
  }

  void expectParts(MicroBatch microBatch) const {
    if (microBatch.part >= microBatch.parts || rows % microBatch.parts != 0)
      throw std::invalid_argument(
          "expected a part of a micro-batch of " + std::to_string(rows) +
          " that divides it, got part " + std::to_string(microBatch.part) +
          " of " + std::to_string(microBatch.parts));
  }
  void expectOutputGradient(MicroBatch microBatch, ConstBytes bytes) const {
    expectParts(microBatch);
    expectBytes("output gradient", bytes.size(),
                layers.hasHead() ? sizeof(double)
                                 : boundaryBytes / microBatch.parts);
  }
  void expectInputGradient(MicroBatch microBatch, ConstBytes bytes) const {
    expectBytes("input gradient", bytes.size(),
                layers.hasEmbedding() ? 0 : boundaryBytes / microBatch.parts);
  }

  // A forward without a stash. It runs the same kernels as a forward with a
  // stash, on memory of the same alignment. So it gives the same bits. The
  // operands are cloned for the alignment.
  void forwardOnly(MicroBatch microBatch, ConstBytes input, ConstBytes labels,
                   ConstBytes weights, Bytes output, ForwardMode mode) const {
    at::NoGradGuard noGraph;
    Tensor x = layers.hasEmbedding() ? tokens(input, microBatch)
                                     : activation(input, microBatch);
    Tensor targets =
        layers.hasHead() ? tokens(labels, microBatch).clone() : Tensor();
    Parameters parameters{
        .all = layers.weights().computedTensorsOver(weights.data())};
    const bool counts = layers.hasHead() && mode == ForwardMode::Accuracy;
    // Without labels, the head makes logits.
    const Tensor result =
        layers.run(x.clone(), counts ? Tensor() : targets, parameters,
                   trains(mode) ? std::optional(microBatch) : std::nullopt);
    if (counts)
      writeNumber(countRight(result, targets), 1, output);
    else
      write(result, microBatch, output);
  }

  // The mean loss of a part, divided by the number of parts, is the part's
  // share of the micro-batch's mean loss.
  void write(const Tensor &result, MicroBatch microBatch, Bytes output) const {
    if (layers.hasHead())
      writeNumber(result, microBatch.parts, output);
    else
      activation(output, microBatch).copy_(result);
  }

  // Writes one number, divided by `divisor`.
  void writeNumber(const Tensor &number, uint32_t divisor, Bytes output) const {
    if (placement.isCuda) {
      // Copy on the device, because number.item() would wait for the GPU.
      view(output, {}, at::kDouble)
          .copy_(number.to(at::kDouble).div(int64_t{divisor}));
    } else {
      const double quotient = number.item<double>() / divisor;
      std::memcpy(output.data(), &quotient, sizeof quotient);
    }
  }

  // Casts `saved` to the expected type. Throws std::invalid_argument if it has
  // another type or belongs to other weights.
  template <typename S>
  static S &expectStash(const std::unique_ptr<Stash> &saved,
                        ConstBytes weights) {
    auto *stash = dynamic_cast<S *>(saved.get());
    if (!stash || stash->weights != weights.data())
      throw std::invalid_argument(
          std::is_same_v<S, ForwardStash>
              ? "expected the stash of a forward of this stage over the same "
                "weights, got another"
              : "expected the stash of an input gradient of this stage over "
                "the same weights, got another");
    return *stash;
  }

  // The gradient of the micro-batch's loss is one, and each part gets an equal
  // share of it.
  Tensor gradientOfOutput(MicroBatch microBatch, ConstBytes bytes) const {
    return layers.hasHead()
               ? at::full(
                     {}, 1. / microBatch.parts,
                     at::dtype(layers.lossType()).device(deviceOf(placement)))
               : activation(bytes, microBatch);
  }

  Tensor tokens(ConstBytes bytes, MicroBatch microBatch) const {
    return view(bytes, {rows / microBatch.parts, context}, at::kLong);
  }
  Tensor activation(ConstBytes bytes, MicroBatch microBatch) const {
    return view(bytes, {rows / microBatch.parts, context, width},
                layers.weights().computedType());
  }

  // A tensor over the caller's bytes.
  Tensor view(ConstBytes bytes, at::IntArrayRef shape,
              at::ScalarType type) const {
    return tensorOver(bytes.data(), shape, type, placement);
  }

  DevicePlacement placement;
  Gpt2 layers;
  std::shared_ptr<const InitialValues> values; ///< null: drawn at random
  int64_t rows; ///< samples in a whole micro-batch
  int64_t context, width;
  int64_t tokenBytes, boundaryBytes; ///< of a whole micro-batch
};

} // namespace

std::unique_ptr<Stage>
makeTransformerStage(const program::ProgramT &program, uint32_t number,
                     const DevicePlacement &placement,
                     std::shared_ptr<const InitialValues> values) {
  if (number >= program.stages.size())
    throw std::invalid_argument("expected one of the program's " +
                                std::to_string(program.stages.size()) +
                                " stages, got " + std::to_string(number));
  const program::Stage &declared = program.stages[number];
  auto stage = std::make_unique<TransformerStage>(
      program, declared.first_layer(), declared.layers(), placement,
      std::move(values));

  if (std::string problem = program::checkStages(program); !problem.empty())
    throw std::invalid_argument(problem);
  return stage;
}

} // namespace chimera::runtime
