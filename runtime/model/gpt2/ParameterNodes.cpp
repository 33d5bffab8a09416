//===- ParameterNodes.cpp - Operations that have parameters ---------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/gpt2/ParameterNodes.h"

#include "runtime/model/gpt2/AutogradNode.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace chimera::runtime {
namespace {

using at::Tensor;
using torch::autograd::Node;
using torch::autograd::variable_list;

constexpr double kNormEpsilon = 1e-5;

/// A norm's parameter, in the type for an input like `input`. If the input is
/// bfloat16, the host's kernels compute statistics in float32 (as a GPU does)
/// only if the parameters are float32.
Tensor ofNorm(const Tensor &parameter, const Tensor &input) {
  return input.is_cpu() && input.scalar_type() == at::kBFloat16
             ? parameter.to(at::kFloat)
             : parameter;
}

/// `x` as a matrix whose rows are the last dimension of `x`. Copies only if
/// necessary.
Tensor flattened(const Tensor &x) { return x.reshape({-1, x.size(-1)}); }

/// The node of one operation with parameters. A graph is executed only once, so
/// `apply` releases the node's tensors.
class ParameterNode final : public Node {
public:
  ParameterNode(Parameters &parameters, ParameterUse use, Tensor normed)
      : parameters(parameters), use(std::move(use)), normed(std::move(normed)) {
  }

  variable_list apply(variable_list &&gradients) override {
    use.outputGradient = use.kind == ParameterUse::Kind::Embedding
                             ? std::move(gradients[0])
                             : flattened(gradients[0]);
    variable_list ofInput;
    switch (use.kind) {
    case ParameterUse::Kind::Embedding:
      break;
    case ParameterUse::Kind::Linear:
      ofInput = {ofLinearsInput()};
      break;
    case ParameterUse::Kind::NormedLinear:
      ofInput = {ofNormsInput()};
      break;
    }
    if (!parameters.accumulatesImmediately())
      parameters.uses.push_back(std::move(use));
    else if (use.kind != ParameterUse::Kind::NormedLinear)
      addWeightGradient(use, parameters.all, parameters.sums);
    use = {};
    normed.reset();
    return ofInput;
  }

private:
  Tensor ofLinearsInput() const {
    return product(use.outputGradient, parameters.all[use.weight]);
  }

  /// The gradient of the norm's input. If gradients are added at once, this
  /// function also adds the gradients of the parameters. It needs less work
  /// than addWeightGradient, since it has the norm's output (`normed`).
  Tensor ofNormsInput() {
    const bool adds = parameters.accumulatesImmediately();
    const std::vector<Tensor> &all = parameters.all;
    auto [ofInput, ofScale, ofShift] = at::native_layer_norm_backward(
        ofLinearsInput().view(use.input.sizes()), use.input,
        {use.input.size(-1)}, use.mean, use.reciprocalDeviation,
        ofNorm(all[use.parameter], use.input),
        ofNorm(all[use.parameter + 1], use.input), {true, adds, adds});
    if (adds) {
      std::vector<GradientSum> &sums = parameters.sums;
      sums[use.weight].addProduct(use.outputGradient.t(), normed);
      if (use.hasBias)
        sums[use.weight + 1].addRows(use.outputGradient);
      sums[use.parameter].add(ofScale);
      sums[use.parameter + 1].add(ofShift);
    }
    return ofInput;
  }

  Parameters &parameters;
  ParameterUse use;
  Tensor normed; ///< the norm's output, [tokens, width]
};

std::unique_ptr<Node> nodeOf(Parameters &parameters, ParameterUse use,
                             Tensor normed = {}) {
  return std::make_unique<ParameterNode>(parameters, std::move(use),
                                         std::move(normed));
}

/// The matrix `y`, reshaped to [samples, tokens, ...] like `x`. Uses
/// _unsafe_view: if the result were a view of `y`, an in-place sum in it would
/// make autograd copy the gradient.
Tensor shapedAs(const Tensor &x, const Tensor &y) {
  return at::_unsafe_view(y, {x.size(0), x.size(1), y.size(-1)});
}

} // namespace

Tensor embed(Parameters &parameters, const Tensor &tokens, size_t p) {
  const std::vector<Tensor> &all = parameters.all;
  Tensor sum;
  {
    at::NoGradGuard noGraph;
    sum = at::embedding(all[p], tokens).add_(all[p + 1]);
  }
  if (at::GradMode::is_enabled())
    setNode(sum, {},
            nodeOf(parameters, {.kind = ParameterUse::Kind::Embedding,
                                .parameter = p,
                                .weight = p,
                                .input = tokens}));
  return sum;
}

Tensor linear(Parameters &parameters, const Tensor &x, size_t p) {
  const std::vector<Tensor> &all = parameters.all;
  Tensor flat = flattened(x), y;
  {
    at::NoGradGuard noGraph;
    y = shapedAs(x, productWithBias(all[p + 1], flat, all[p]));
  }
  if (at::GradMode::is_enabled())
    setNode(y, torch::autograd::collect_next_edges(flat),
            nodeOf(parameters, {.kind = ParameterUse::Kind::Linear,
                                .parameter = p,
                                .weight = p,
                                .hasBias = true,
                                .input = flat.detach()}));
  return y;
}

Tensor normedLinear(Parameters &parameters, const Tensor &x, size_t p, size_t w,
                    bool hasBias) {
  const std::vector<Tensor> &all = parameters.all;
  Tensor y, normed, mean, reciprocalDeviation;
  {
    at::NoGradGuard noGraph;
    std::tie(normed, mean, reciprocalDeviation) =
        at::native_layer_norm(x, {x.size(-1)}, ofNorm(all[p], x),
                              ofNorm(all[p + 1], x), kNormEpsilon);
    normed = flattened(normed);
    y = shapedAs(x, hasBias ? productWithBias(all[w + 1], normed, all[w])
                            : product(normed, all[w].t()));
  }
  if (at::GradMode::is_enabled())
    setNode(y, torch::autograd::collect_next_edges(x),
            nodeOf(parameters,
                   {.kind = ParameterUse::Kind::NormedLinear,
                    .parameter = p,
                    .weight = w,
                    .hasBias = hasBias,
                    .input = x.detach(),
                    .mean = std::move(mean),
                    .reciprocalDeviation = std::move(reciprocalDeviation)},
                   std::move(normed)));
  return y;
}

} // namespace chimera::runtime
