//===- GraphPredictor.cpp - Next tokens of a model ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/graph/GraphStage.h"
#include "runtime/model/graph/PromptInputs.h"
#include "runtime/model/graph/StageLayers.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>

#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;
using at::Tensor;

namespace {

class GraphPredictor : public Predictor {
public:
  GraphPredictor(const program::ProgramT &program, const InitialValues *values)
      : layers(program, 0, 0, DevicePlacement(), nullptr),
        inputs(*program.model), graphs(layers.end()) {
    if (!graphs.logits)
      throw std::invalid_argument(
          "expected a model that was exported with logits, got one without: "
          "export it again (see Model in tools/export)");
    weights.resize(static_cast<size_t>(layers.weights().bytes()));
    layers.weights().initializeWeights(weights, values);
  }

  uint64_t context() const override { return inputs.context(); }
  uint64_t vocabulary() const override { return graphs.vocabulary; }

  std::vector<double> nextLogits(std::span<const int64_t> tokens) override {
    // Each sample has the model's whole context. The logits after the last
    // token are ignored.
    const auto position = static_cast<int64_t>(tokens.size()) - 1;
    const Tensor all = logits(inputs.tensorsFor(tokens));
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
  /// The logits after each token, from the inputs of one sample.
  Tensor logits(std::vector<Tensor> values) {
    at::NoGradGuard noGraph;
    at::AutoDispatchBelowADInplaceOrView kernelsAlone;
    const std::vector<const Layer *> &own = layers.forSamples(1);
    const std::vector<Tensor> tensors =
        layers.weights().computedTensorsOver(weights.data());
    const uint32_t last = layers.size() - 1;
    for (uint32_t k = 0; k < last; ++k)
      values = layers.run(k, [&] {
        return own[k]->forward(
            layers.contextOf(k, std::nullopt), layers.parametersOf(k, tensors),
            std::move(values), {}, /*wantsOutputs=*/true, nullptr);
      });
    return layers.run(last, [&] {
      return own[last]->logits(layers.contextOf(last, std::nullopt),
                               layers.parametersOf(last, tensors), values);
    });
  }

  StageLayers layers;
  PromptInputs inputs;
  const program::LayerGraphsT &graphs; ///< of the last layer
  std::vector<std::byte> weights;
};

} // namespace

std::unique_ptr<Predictor>
chimera::runtime::makePredictor(const program::ProgramT &program,
                                std::shared_ptr<const InitialValues> values) {
  return std::make_unique<GraphPredictor>(program, values.get());
}
