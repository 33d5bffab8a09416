//===- ExportedStage.cpp - Layers of an exported model --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/stage/exported/ExportedStage.h"

#include "runtime/program/Layers.h"
#include "runtime/program/Predictions.h"
#include "runtime/stage/exported/Layer.h"
#include "runtime/stage/exported/Packing.h"
#include "runtime/stage/exported/PromptInputs.h"
#include "runtime/stage/torch/RightPredictions.h"
#include "runtime/stage/torch/StageWeights.h"
#include "runtime/stage/torch/TensorOver.h"
#include "runtime/stage/torch/Tensors.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <type_traits>

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

class ExportedStage : public Stage {
public:
  ExportedStage(const program::ProgramT &program, uint32_t first,
                uint32_t count, std::shared_ptr<const InitialValues> values,
                const DevicePlacement &placement,
                std::shared_ptr<const NativeCode> native)
      : placement(placement), package(*program.model->package),
        predicted(program::predictedField(*program.model)), seed(program.seed),
        samples(program.micro_batch_size), first(first), count(count),
        parameters(program, first, count, placement), values(std::move(values)),
        native(std::move(native)) {
    // The index within the stage's parameters, by layer and parameter number.
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> slots;
    for (uint32_t i = 0; i < parameters.slots().size(); ++i)
      slots[{parameters.slots()[i].layer, parameters.slots()[i].number}] = i;
    for (uint32_t layer = first; layer < first + count; ++layer) {
      std::vector<uint32_t> &numbers = slotsOf.emplace_back();
      for (uint32_t i = 0; i < kindOf(package, layer).parameters.size(); ++i) {
        auto found = slots.find({layer, i});
        if (found == slots.end()) { // tied: stored as the first layer's
          const auto [other, number] =
              program::initialValueSource(*program.model, layer, i);
          found = slots.find({other, number});
        }
        numbers.push_back(found->second);
      }
    }
    for (uint32_t layer = first; layer < first + count; ++layer) {
      const program::LayerKindT &kind = kindOf(package, layer);
      if (!constants.contains(&kind))
        constants[&kind] = constantsOf(kind, deviceOf(placement));
      mostBytes = std::max(mostBytes, mostBytesOf(kind));
    }
    layersFor(samples);
  }

  ElementType weightType() const override {
    return parameters.type() == at::kDouble ? ElementType::Float64
                                            : ElementType::Float32;
  }
  ElementType lossType() const override { return ElementType::Float64; }

  void initialize(Bytes weights, Bytes optimizerState) override {
    parameters.initialize(weights, optimizerState, values.get());
  }

  std::unique_ptr<Stash> forward(MicroBatch microBatch, ConstBytes input,
                                 ConstBytes labels, ConstBytes weights,
                                 Bytes output, ForwardMode mode) override {
    at::NoGradGuard noGraph;
    at::AutoDispatchBelowADInplaceOrView kernelsAlone;
    const std::vector<const Layer *> &layers = layersFor(microBatch);
    const uint32_t rows = samplesOf(microBatch);
    const LayerGraphsT &begin = layers.front()->definition();
    const LayerGraphsT &end = layers.back()->definition();
    expectBytes("input", input.size(), program::bytesOf(begin.inputs, rows));
    expectBytes("labels", labels.size(),
                isLast() ? program::bytesOf(end.labels, rows) : 0);
    expectBytes("weights", weights.size(), parameters.bytes());
    expectBytes("output", output.size(),
                mode == ForwardMode::Stash ? 0
                : isLast()                 ? sizeof(double)
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
        isLast() ? unpack(labels, end.labels, rows, placement)
                 : std::vector<Tensor>();
    const std::optional<MicroBatch> dropped =
        trains(mode) ? std::optional(microBatch) : std::nullopt;
    const bool counts = isLast() && mode == ForwardMode::Accuracy;
    for (uint32_t k = 0; k < count; ++k) {
      const bool ends = k + 1 == count;
      if (ends && counts) {
        values = {inLayer(k, [&] {
          return countRight(layers[k]->logits(contextOf(k, dropped),
                                              parametersOf(k, tensors), values),
                            targets.at(predicted.value()));
        })};
        break;
      }
      Layer::ForBackward stashed;
      values = inLayer(k, [&] {
        return layers[k]->forward(
            contextOf(k, dropped), parametersOf(k, tensors), std::move(values),
            ends ? targets : std::vector<Tensor>(),
            /*wantsOutputs=*/!(ends && mode == ForwardMode::Stash),
            stash ? &stashed : nullptr);
      });
      if (stash)
        stash->layers.push_back(std::move(stashed));
    }
    if (mode != ForwardMode::Stash) {
      if (isLast())
        writeNumber(values[0], counts ? 1 : shareOf(microBatch), output);
      else
        pack(values, end.outputs, rows, output, placement);
    }
    return stash;
  }

  /// The logits after each token, from the inputs of one sample. Requires that
  /// the stage has all layers. Requires a package with logits.
  Tensor logits(std::vector<Tensor> values, ConstBytes weights) {
    at::NoGradGuard noGraph;
    at::AutoDispatchBelowADInplaceOrView kernelsAlone;
    const std::vector<const Layer *> &layers = layersFor(/*rows=*/1);
    const std::vector<Tensor> tensors =
        parameters.computedTensorsOver(weights.data());
    for (uint32_t k = 0; k + 1 < count; ++k)
      values = inLayer(k, [&] {
        return layers[k]->forward(contextOf(k, std::nullopt),
                                  parametersOf(k, tensors), std::move(values),
                                  {}, /*wantsOutputs=*/true, nullptr);
      });
    return inLayer(count - 1, [&] {
      return layers.back()->logits(contextOf(count - 1, std::nullopt),
                                   parametersOf(count - 1, tensors), values);
    });
  }

  const StageWeights &weights() const { return parameters; }

  void backward(MicroBatch microBatch, std::unique_ptr<Stash> saved,
                ConstBytes outputGradient, ConstBytes weights,
                Bytes weightGradient, Bytes inputGradient,
                WgradMode mode) override {
    at::NoGradGuard noGraph;
    at::AutoDispatchBelowADInplaceOrView kernelsAlone;
    ForwardStash &stash = expectStash<ForwardStash>(saved, weights);
    std::vector<GradientSum> sums = sumsOf(weightGradient, mode);
    const std::vector<Tensor> tensors =
        parameters.computedTensorsOver(weights.data());
    const std::vector<const Layer *> &layers = layersFor(microBatch);
    std::vector<Tensor> gradients = gradientsOf(microBatch, outputGradient);
    for (uint32_t k = count; k-- > 0;) {
      gradients = inLayer(k, [&] {
        return layers[k]->backward(
            contextOf(k, microBatch), parametersOf(k, tensors),
            std::move(stash.layers[k]), std::move(gradients), sumsOf(k, sums));
      });
    }
    finish(sums);
    writeInputGradient(microBatch, gradients, inputGradient);
  }

  std::unique_ptr<Stash> inputGradient(MicroBatch microBatch,
                                       std::unique_ptr<Stash> saved,
                                       ConstBytes outputGradient,
                                       ConstBytes weights,
                                       Bytes inputGradient) override {
    at::NoGradGuard noGraph;
    at::AutoDispatchBelowADInplaceOrView kernelsAlone;
    ForwardStash &stash = expectStash<ForwardStash>(saved, weights);
    const std::vector<Tensor> tensors =
        parameters.computedTensorsOver(weights.data());
    const std::vector<const Layer *> &layers = layersFor(microBatch);
    auto rest = std::make_unique<WeightStash>();
    rest->weights = stash.weights;
    rest->layers.resize(count);
    std::vector<Tensor> gradients = gradientsOf(microBatch, outputGradient);
    for (uint32_t k = count; k-- > 0;)
      gradients = inLayer(k, [&] {
        return layers[k]->inputGradient(
            contextOf(k, microBatch), parametersOf(k, tensors),
            std::move(stash.layers[k]), std::move(gradients), rest->layers[k]);
      });
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
    const std::vector<const Layer *> &layers = layersFor(microBatch);
    for (uint32_t k = count; k-- > 0;)
      inLayer(k, [&] {
        layers[k]->weightGradient(contextOf(k, microBatch),
                                  parametersOf(k, tensors),
                                  std::move(stash.layers[k]), sumsOf(k, sums));
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
  bool isLast() const { return first + count == package.layers.size(); }

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

  /// The stage's layers for `rows` samples. Makes them if they are new.
  const std::vector<const Layer *> &layersFor(uint32_t rows) {
    std::vector<const Layer *> &layers = bySamples[rows];
    if (!layers.empty())
      return layers;
    std::vector<const Layer *> all;
    for (uint32_t layer = first; layer < first + count; ++layer) {
      const program::LayerKindT &kind = kindOf(package, layer);
      std::unique_ptr<Layer> &shared = made[{&kind, rows}];
      if (!shared)
        shared = std::make_unique<Layer>(kind, constants.at(&kind), rows,
                                         placement, native.get());
      all.push_back(shared.get());
    }
    return layers = std::move(all);
  }
  const std::vector<const Layer *> &layersFor(MicroBatch microBatch) {
    return layersFor(samplesOf(microBatch));
  }

  /// The limit on the size of tensors that a kind of layer needs: kWorkspace
  /// plus kIntermediates times the largest size that the package states. So the
  /// proof of the program (runtime/proof) knows this limit. Temporaries may be
  /// larger than the stated tensors: a convolution kernel copies each element
  /// once for each weight by which it multiplies the element.
  uint64_t mostBytesOf(const program::LayerKindT &kind) const {
    constexpr uint64_t kWorkspace = uint64_t{1} << 24;
    constexpr uint64_t kIntermediates = 64;
    return kWorkspace +
           kIntermediates *
               static_cast<uint64_t>(largestBytes(
                   kind, samples,
                   static_cast<int64_t>(at::elementSize(parameters.type()))));
  }

  /// Calls `action`. If `action` throws, names layer `k` in the error message.
  template <typename Action>
  std::invoke_result_t<Action> inLayer(uint32_t k, Action action) const {
    const TensorLimit limit(mostBytes);
    try {
      return action();
    } catch (const std::exception &error) {
      std::string path = package.layers[first + k]->path;
      if (!path.empty())
        path = " (" + path.substr(0, path.size() - 1) + ")";
      throw std::runtime_error("layer " + std::to_string(first + k) + path +
                               ": " + error.what());
    }
  }

  Executable::Context contextOf(uint32_t k,
                                std::optional<MicroBatch> dropped) const {
    return {.seed = seed,
            .layer = first + k,
            .dropped = dropped,
            .kernels = placement.kernels,
            .sums = {}};
  }

  /// The parameters of layer `k`. `tensors` has all parameters of the stage.
  std::vector<Tensor> parametersOf(uint32_t k,
                                   const std::vector<Tensor> &tensors) const {
    std::vector<Tensor> result;
    for (uint32_t slot : slotsOf[k])
      result.push_back(tensors[slot]);
    return result;
  }
  std::vector<GradientSum *> sumsOf(uint32_t k,
                                    std::vector<GradientSum> &sums) const {
    std::vector<GradientSum *> result;
    for (uint32_t slot : slotsOf[k])
      result.push_back(&sums[slot]);
    return result;
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

  void writeNumber(const Tensor &number, double factor, Bytes output) const {
    tensorOver(output.data(), {}, at::kDouble, placement)
        .copy_(number.to(at::kDouble).mul(factor));
  }

  /// The factor of a part's loss in the micro-batch's loss: 1 if losses are
  /// sums, 1 / parts if they are means.
  double shareOf(MicroBatch microBatch) const {
    return program::lossTerms(package) > 0 ? 1 : 1. / microBatch.parts;
  }

  /// The output gradients. On the last stage, this is the gradient of the
  /// micro-batch's loss with respect to the part's loss.
  std::vector<Tensor> gradientsOf(MicroBatch microBatch,
                                  ConstBytes bytes) const {
    const Shapes &outputs = graphsOf(package, first + count - 1).outputs;
    if (!isLast()) {
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
    const Shapes &inputs = graphsOf(package, first).inputs;
    const uint32_t rows = samplesOf(microBatch);
    expectBytes("input gradient", inputGradient.size(),
                first == 0 ? 0 : program::bytesOf(inputs, rows));
    if (first > 0)
      pack(gradients, inputs, rows, inputGradient, placement);
  }

  template <typename S>
  S &expectStash(const std::unique_ptr<Stash> &saved,
                 ConstBytes weights) const {
    expectBytes("weights", weights.size(), parameters.bytes());
    auto *stash = dynamic_cast<S *>(saved.get());
    if (!stash || stash->weights != weights.data() ||
        stash->layers.size() != count)
      throw std::invalid_argument(
          "expected the stash of an earlier action of this stage over the same "
          "weights, got another");
    return *stash;
  }

  DevicePlacement placement;
  const program::PackageT &package; ///< of the program
  std::optional<size_t> predicted;  ///< index of the predicted label
  uint64_t seed;
  uint32_t samples; ///< in a whole micro-batch
  uint32_t first, count;
  /// The maximum size of a tensor, in bytes.
  uint64_t mostBytes = 0;
  StageWeights parameters;
  std::shared_ptr<const InitialValues> values;
  std::shared_ptr<const NativeCode> native;
  /// Indices of parameters within the stage, by layer and parameter number.
  std::vector<std::vector<uint32_t>> slotsOf;
  std::map<const program::LayerKindT *, std::vector<Tensor>> constants;
  /// By kind and number of samples: layers of the same kind share one Layer.
  std::map<std::pair<const program::LayerKindT *, uint32_t>,
           std::unique_ptr<Layer>>
      made;
  /// The stage's layers, by number of samples.
  std::map<uint32_t, std::vector<const Layer *>> bySamples;
};

std::unique_ptr<ExportedStage>
makeStage(const program::ProgramT &program, uint32_t first, uint32_t count,
          std::shared_ptr<const InitialValues> values,
          const DevicePlacement &placement,
          std::shared_ptr<const NativeCode> native) {
  if (!program.model || !program.model->package)
    throw std::invalid_argument(
        "expected a program with an exported model, got another");
  if (std::string problem = program::checkModel(*program.model);
      !problem.empty())
    throw std::invalid_argument("model: " + problem);
  if (std::string problem =
          program::checkTypesAndSizes(*program.model, program::typesOf(program),
                                      program.micro_batch_size, /*parts=*/1);
      !problem.empty())
    throw std::invalid_argument(problem);
  countTensorBytes(); // for TensorLimit
  return std::make_unique<ExportedStage>(
      program, first, count > 0 ? count : program::layerCount(*program.model),
      std::move(values), placement, std::move(native));
}

class ExportedPredictor : public Predictor {
public:
  ExportedPredictor(const program::ProgramT &program,
                    const std::shared_ptr<const InitialValues> &values)
      : model(makeStage(program, 0, 0, values, DevicePlacement(), nullptr)),
        inputs(*program.model),
        graphs(graphsOf(*program.model->package,
                        program::layerCount(*program.model) - 1)) {
    if (!graphs.logits)
      throw std::invalid_argument(
          "expected a model that was exported with logits, got one without: "
          "export it again (see Model in tools/export)");
    weights.resize(static_cast<size_t>(model->weights().bytes()));
    model->weights().initializeWeights(weights, values.get());
  }

  uint64_t context() const override { return inputs.context(); }
  uint64_t vocabulary() const override { return graphs.vocabulary; }

  std::vector<double> nextLogits(std::span<const int64_t> tokens) override {
    // Each sample has the model's whole context. The logits after the last
    // token are ignored.
    const auto position = static_cast<int64_t>(tokens.size()) - 1;
    const Tensor all = model->logits(inputs.tensorsFor(tokens), weights);
    if (all.dim() != 3 || all.size(1) <= position ||
        all.size(2) != int64_t{graphs.vocabulary})
      throw std::runtime_error("expected logits of each token, and as many as "
                               "the package says");
    const Tensor last =
        all.select(0, 0).select(0, position).to(at::kDouble).contiguous();
    const auto *first = last.const_data_ptr<double>();
    return {first, first + last.numel()};
  }

private:
  std::unique_ptr<ExportedStage> model;
  PromptInputs inputs;
  const LayerGraphsT &graphs; ///< of the last layer
  std::vector<std::byte> weights;
};

} // namespace

std::unique_ptr<Predictor> chimera::runtime::makeExportedPredictor(
    const program::ProgramT &program,
    std::shared_ptr<const InitialValues> values) {
  return std::make_unique<ExportedPredictor>(program, values);
}

std::unique_ptr<Stage>
chimera::runtime::makeExportedStage(const program::ProgramT &program,
                                    uint32_t number,
                                    std::shared_ptr<const InitialValues> values,
                                    const DevicePlacement &placement,
                                    std::shared_ptr<const NativeCode> native) {
  if (number >= program.stages.size())
    throw std::invalid_argument("expected one of the program's " +
                                std::to_string(program.stages.size()) +
                                " stages, got " + std::to_string(number));
  const program::Stage &declared = program.stages[number];
  auto stage = makeStage(program, declared.first_layer(), declared.layers(),
                         std::move(values), placement, std::move(native));
  if (std::string problem = program::checkStages(program); !problem.empty())
    throw std::invalid_argument(problem);
  return stage;
}

std::unique_ptr<Stage> chimera::runtime::makeWholeExportedModel(
    const program::ProgramT &program,
    std::shared_ptr<const InitialValues> values,
    std::shared_ptr<const NativeCode> native) {
  return makeStage(program, 0, 0, std::move(values), DevicePlacement(),
                   std::move(native));
}
