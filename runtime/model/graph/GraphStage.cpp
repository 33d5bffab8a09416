//===- GraphStage.cpp - Layers as graphs ----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/graph/GraphStage.h"

#include "runtime/model/graph/Packing.h"
#include "runtime/model/graph/StageLayers.h"
#include "runtime/model/tensors/RightPredictions.h"
#include "runtime/model/tensors/TensorOver.h"
#include "runtime/program/CheckStages.h"
#include "runtime/program/Layers.h"
#include "runtime/program/Predictions.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;
using at::Tensor;
using program::LayerGraphsT;

namespace {

/// The stash of a forward: the tensors that each layer's backward reads.
struct ForwardStash : Stash {
  std::vector<Layer::ForBackward> layers;
  const std::byte *weights;
};

/// The stash of an input gradient: the tensors that the weight gradient reads.
struct WeightStash : Stash {
  std::vector<std::vector<Tensor>> layers;
  const std::byte *weights;
};

class GraphStage : public Stage {
public:
  GraphStage(const program::ProgramT &program, uint32_t first, uint32_t count,
             std::shared_ptr<const InitialValues> values,
             const DevicePlacement &placement,
             std::shared_ptr<const NativeCode> native)
      : placement(placement), values(std::move(values)),
        native(std::move(native)),
        layers(program, first, count, placement, this->native.get()),
        parameters(layers.weights()),
        predicted(program::predictedField(*program.model)),
        ignored(program::ignoredLabel(*program.model)),
        samples(program.micro_batch_size),
        terms(program::lossTerms(*program.model)),
        isDivisible(program.model->divisible) {}

  ElementType weightType() const override {
    return parameters.type() == at::kDouble     ? ElementType::Float64
           : parameters.type() == at::kBFloat16 ? ElementType::BFloat16
                                                : ElementType::Float32;
  }
  ElementType lossType() const override { return ElementType::Float64; }
  bool needsLossWeights() const override { return terms > 0; }

  bool needsErrorFlag() const override { return placement.isOnGpu(); }
  void setErrorFlag(Bytes flag) override {
    layers.setWrongIndex(tensorOver(flag.data(), {}, at::kInt, placement));
  }
  std::string errorMessage(int32_t flag) const override {
    return layers.wrongIndexMessage(flag);
  }
  void setStepMemory(ConstBytes step) override {
    layers.setStep(reinterpret_cast<const uint64_t *>(step.data()));
  }

  void initialize(Bytes weights, Bytes optimizerState) override {
    parameters.initialize(weights, optimizerState, values.get());
  }

  std::unique_ptr<Stash> forward(MicroBatch microBatch, ConstBytes input,
                                 ConstBytes labels, ConstBytes weights,
                                 Bytes output, ForwardMode mode) override {
    at::NoGradGuard noGraph;
    at::AutoDispatchBelowADInplaceOrView kernelsAlone;
    const uint32_t rows = samplesOf(microBatch);
    const std::vector<const Layer *> &own = layers.forSamples(rows);
    const LayerGraphsT &begin = layers.begin(), &end = layers.end();
    expectBytes("input", input.size(), program::bytesOf(begin.inputs, rows));
    expectBytes("labels", labels.size(),
                layers.hasLast() ? program::bytesOf(end.labels, rows) : 0);
    expectBytes("weights", weights.size(), parameters.bytes());
    expectBytes("output", output.size(),
                mode == ForwardMode::Stash ? 0
                : layers.hasLast()         ? sizeof(double)
                                   : program::bytesOf(end.outputs, rows));

    std::unique_ptr<ForwardStash> stash;
    if (makesStash(mode)) {
      stash = std::make_unique<ForwardStash>();
      stash->weights = weights.data();
    }
    const std::vector<Tensor> tensors =
        parameters.computedTensorsOver(weights.data());
    std::vector<Tensor> values = unpack(input, begin.inputs, rows, placement);
    const std::vector<Tensor> targets =
        layers.hasLast() ? unpack(labels, end.labels, rows, placement)
                         : std::vector<Tensor>();
    const std::optional<MicroBatch> dropped =
        trains(mode) ? std::optional(microBatch) : std::nullopt;
    const bool counts = layers.hasLast() && mode == ForwardMode::Accuracy;
    const bool leavesOutLoss = layers.hasLast() && trains(mode) &&
                               own.back()->computesLossInBackward();
    // Without a stash, nothing needs a forward that leaves out the loss.
    const uint32_t needed = leavesOutLoss && !stash ? 0 : layers.size();
    for (uint32_t k = 0; k < needed; ++k) {
      const bool ends = k + 1 == layers.size();
      if (ends && counts) {
        values = {layers.run(k, [&] {
          return rightPredictions(values, targets.at(predicted.value()),
                                  layers.parametersOf(k, tensors), rows);
        })};
        break;
      }
      Layer::ForBackward stashed;
      values = layers.run(k, [&] {
        return own[k]->forward(
            layers.contextOf(k, dropped), layers.parametersOf(k, tensors),
            std::move(values), ends ? targets : std::vector<Tensor>(),
            /*wantsOutputs=*/
            !(ends && (leavesOutLoss || mode == ForwardMode::Stash)),
            stash ? &stashed : nullptr);
      });
      if (stash)
        stash->layers.push_back(std::move(stashed));
    }
    if (leavesOutLoss)
      values = {
          at::zeros({}, at::dtype(at::kDouble).device(deviceOf(placement)))};
    if (mode != ForwardMode::Stash) {
      if (layers.hasLast())
        writeNumber(values[0], counts ? 1 : shareOf(microBatch), output);
      else
        pack(values, end.outputs, rows, output, placement);
    }
    return stash;
  }

  void backward(MicroBatch microBatch, std::unique_ptr<Stash> saved,
                Bytes outputGradient, ConstBytes weights, Bytes weightGradient,
                Bytes inputGradient, WgradMode mode) override {
    at::NoGradGuard noGraph;
    at::AutoDispatchBelowADInplaceOrView kernelsAlone;
    ForwardStash &stash = expectStash<ForwardStash>(saved, weights);
    std::vector<GradientSum> sums = sumsOf(weightGradient, mode);
    const std::vector<Tensor> tensors =
        parameters.computedTensorsOver(weights.data());
    const std::vector<const Layer *> &own = layersFor(microBatch);
    std::vector<Tensor> gradients = gradientsOf(microBatch, outputGradient);
    for (uint32_t k = layers.size(); k-- > 0;) {
      Layer::BackwardResults made = layers.run(k, [&] {
        return own[k]->backward(layers.contextOf(k, microBatch),
                                layers.parametersOf(k, tensors),
                                std::move(stash.layers[k]),
                                std::move(gradients), layers.sumsOf(k, sums));
      });
      gradients = std::move(made.gradients);
      addLoss(made.loss, microBatch, outputGradient);
    }
    finish(sums);
    writeInputGradient(microBatch, gradients, inputGradient);
  }

  std::unique_ptr<Stash> inputGradient(MicroBatch microBatch,
                                       std::unique_ptr<Stash> saved,
                                       Bytes outputGradient, ConstBytes weights,
                                       Bytes inputGradient) override {
    at::NoGradGuard noGraph;
    at::AutoDispatchBelowADInplaceOrView kernelsAlone;
    ForwardStash &stash = expectStash<ForwardStash>(saved, weights);
    const std::vector<Tensor> tensors =
        parameters.computedTensorsOver(weights.data());
    const std::vector<const Layer *> &own = layersFor(microBatch);
    auto rest = std::make_unique<WeightStash>();
    rest->weights = stash.weights;
    rest->layers.resize(layers.size());
    std::vector<Tensor> gradients = gradientsOf(microBatch, outputGradient);
    for (uint32_t k = layers.size(); k-- > 0;) {
      Layer::BackwardResults made = layers.run(k, [&] {
        return own[k]->inputGradient(
            layers.contextOf(k, microBatch), layers.parametersOf(k, tensors),
            std::move(stash.layers[k]), std::move(gradients), rest->layers[k]);
      });
      gradients = std::move(made.gradients);
      addLoss(made.loss, microBatch, outputGradient);
    }
    writeInputGradient(microBatch, gradients, inputGradient);
    return rest;
  }

  void weightGradient(MicroBatch microBatch, std::unique_ptr<Stash> saved,
                      ConstBytes weights, Bytes weightGradient,
                      WgradMode mode) override {
    at::NoGradGuard noGraph;
    at::AutoDispatchBelowADInplaceOrView kernelsAlone;
    WeightStash &stash = expectStash<WeightStash>(saved, weights);
    std::vector<GradientSum> sums = sumsOf(weightGradient, mode);
    const std::vector<Tensor> tensors =
        parameters.computedTensorsOver(weights.data());
    const std::vector<const Layer *> &own = layersFor(microBatch);
    for (uint32_t k = layers.size(); k-- > 0;)
      layers.run(k, [&] {
        own[k]->weightGradient(
            layers.contextOf(k, microBatch), layers.parametersOf(k, tensors),
            std::move(stash.layers[k]), layers.sumsOf(k, sums));
      });
    finish(sums);
  }

  void squaredNorm(ConstBytes gradientSum, Bytes squaredNorm) override {
    parameters.squaredNorm(gradientSum, squaredNorm);
  }

  void optimizerStep(const Update &update, ConstBytes gradientSum,
                     Bytes weights, Bytes optimizerState, Bytes halted,
                     ConstBytes squaredNorm) override {
    parameters.update(update, gradientSum, weights, optimizerState, halted,
                      squaredNorm);
  }

private:
  /// The number of samples in this part of a micro-batch.
  uint32_t samplesOf(MicroBatch microBatch) const {
    if (microBatch.parts == 0 || microBatch.part >= microBatch.parts ||
        samples % microBatch.parts != 0)
      throw std::invalid_argument(
          "expected a part of a micro-batch of " + std::to_string(samples) +
          " that divides it, got part " + std::to_string(microBatch.part) +
          " of " + std::to_string(microBatch.parts));
    return samples / microBatch.parts;
  }

  const std::vector<const Layer *> &layersFor(MicroBatch microBatch) {
    return layers.forSamples(samplesOf(microBatch));
  }

  std::vector<GradientSum> sumsOf(Bytes weightGradient, WgradMode mode) const {
    expectBytes("weight gradient", weightGradient.size(),
                parameters.parameterBytes());
    std::vector<GradientSum> sums;
    for (Tensor &gradient : parameters.tensorsOver(weightGradient.data()))
      sums.push_back({std::move(gradient), mode == WgradMode::Add});
    return sums;
  }
  /// Sets each sum that has not begun to zero. Its parameter has no gradient.
  static void finish(std::vector<GradientSum> &sums) {
    for (GradientSum &sum : sums)
      if (!sum.hasBegun)
        sum.gradient.zero_();
  }

  /// The number of `targets` that the logits of the last layer predict right.
  /// If there are many logits, they are computed for one sample at a time,
  /// because training may not have the memory for all of them.
  Tensor rightPredictions(const std::vector<Tensor> &inputs,
                          const Tensor &targets,
                          const std::vector<Tensor> &weights, uint32_t rows) {
    constexpr int64_t kMany = 1 << 20;
    const uint32_t k = layers.size() - 1;
    const bool areMany = targets.numel() * layers.end().vocabulary > kMany;
    auto hasRows = [&](const Tensor &x) {
      return x.dim() > 0 && x.size(0) % rows == 0;
    };
    const uint32_t each =
        areMany && isDivisible && std::ranges::all_of(inputs, hasRows) ? 1
                                                                       : rows;
    const Layer &layer = *layers.forSamples(each)[k];
    Tensor count =
        at::zeros({}, at::dtype(at::kDouble).device(deviceOf(placement)));
    for (uint32_t first = 0; first < rows; first += each) {
      auto some = [&](const Tensor &x) {
        const int64_t perSample = x.size(0) / rows;
        return x.narrow(0, first * perSample, each * perSample);
      };
      std::vector<Tensor> part;
      for (const Tensor &x : inputs)
        part.push_back(each == rows ? x : some(x));
      count.add_(countRight(
          layer.logits(layers.contextOf(k, std::nullopt), weights, part),
          each == rows ? targets : some(targets), ignored));
    }
    return count;
  }

  void writeNumber(const Tensor &number, double factor, Bytes output) const {
    tensorOver(output.data(), {}, at::kDouble, placement)
        .copy_(number.to(at::kDouble).mul(factor));
  }

  /// Adds a loss that a backward has computed, if it is defined, to the loss of
  /// the micro-batch.
  void addLoss(const Tensor &loss, MicroBatch microBatch, Bytes sum) const {
    if (loss.defined())
      tensorOver(sum.data(), {}, at::kDouble, placement)
          .add_(loss.to(at::kDouble).mul(shareOf(microBatch)));
  }

  /// The factor of a part's loss in the micro-batch's loss: 1 if losses are
  /// sums, 1 / parts if they are means.
  double shareOf(MicroBatch microBatch) const {
    return terms > 0 ? 1 : 1. / microBatch.parts;
  }

  /// The output gradients. On the last stage, this is the gradient of the
  /// micro-batch's loss with respect to the part's loss.
  std::vector<Tensor> gradientsOf(MicroBatch microBatch,
                                  ConstBytes bytes) const {
    const Shapes &outputs = layers.end().outputs;
    if (!layers.hasLast()) {
      const uint32_t rows = samplesOf(microBatch);
      expectBytes("output gradient", bytes.size(),
                  program::bytesOf(outputs, rows));
      return unpack(bytes, outputs, rows, placement);
    }
    expectBytes("output gradient", bytes.size(), sizeof(double));
    return {at::full(
        {}, shareOf(microBatch),
        at::dtype(torchTypeOf(outputs[0]->type)).device(deviceOf(placement)))};
  }

  void writeInputGradient(MicroBatch microBatch,
                          const std::vector<Tensor> &gradients,
                          Bytes inputGradient) const {
    const Shapes &inputs = layers.begin().inputs;
    const uint32_t rows = samplesOf(microBatch);
    expectBytes("input gradient", inputGradient.size(),
                layers.hasFirst() ? 0 : program::bytesOf(inputs, rows));
    if (!layers.hasFirst())
      pack(gradients, inputs, rows, inputGradient, placement);
  }

  template <typename S>
  S &expectStash(const std::unique_ptr<Stash> &saved,
                 ConstBytes weights) const {
    expectBytes("weights", weights.size(), parameters.bytes());
    auto *stash = dynamic_cast<S *>(saved.get());
    if (!stash || stash->weights != weights.data() ||
        stash->layers.size() != layers.size())
      throw std::invalid_argument(
          std::is_same_v<S, ForwardStash>
              ? "expected the stash of a forward of this stage over the same "
                "weights, got another"
              : "expected the stash of an input gradient of this stage over "
                "the same weights, got another");
    return *stash;
  }

  DevicePlacement placement;
  std::shared_ptr<const InitialValues> values;
  std::shared_ptr<const NativeCode> native;
  StageLayers layers;
  const StageWeights &parameters;  ///< of `layers`
  std::optional<size_t> predicted; ///< index of the predicted label
  std::optional<int64_t> ignored;  ///< a label that does not count
  uint32_t samples;                ///< in a whole micro-batch
  uint32_t terms;                  ///< of the loss; 0 if it is a mean
  bool isDivisible;                ///< whether samples can be computed alone
};

} // namespace

std::unique_ptr<Stage>
chimera::runtime::makeGraphStage(const program::ProgramT &program,
                                 uint32_t number,
                                 std::shared_ptr<const InitialValues> values,
                                 const DevicePlacement &placement,
                                 std::shared_ptr<const NativeCode> native) {
  if (number >= program.stages.size())
    throw std::invalid_argument("expected one of the program's " +
                                std::to_string(program.stages.size()) +
                                " stages, got " + std::to_string(number));
  if (placement.isCuda && !placement.isOnGpu())
    throw std::invalid_argument("expected kernels for a stage on a GPU");
  const program::Stage &declared = program.stages[number];
  auto stage = std::make_unique<GraphStage>(
      program, declared.first_layer(), declared.layers(), std::move(values),
      placement, std::move(native));
  if (std::string problem = program::checkStages(program); !problem.empty())
    throw std::invalid_argument(problem);
  return stage;
}

std::unique_ptr<Stage>
chimera::runtime::makeWholeModel(const program::ProgramT &program,
                                 std::shared_ptr<const InitialValues> values,
                                 std::shared_ptr<const NativeCode> native) {
  return std::make_unique<GraphStage>(program, 0, 0, std::move(values),
                                      DevicePlacement(), std::move(native));
}
