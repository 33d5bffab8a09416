//===- Gpt2.cpp - GPT-2's layers on tensors -------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What autograd keeps here is what Layout.cpp counts, term by term; a test
// measures it. Change both together.
//
//===----------------------------------------------------------------------===//

#include "runtime/stage/torch/Gpt2.h"

#include "runtime/stage/Philox.h"
#include "runtime/stage/torch/Random.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/autograd/variable.h>

#include <cmath>
#include <limits>
#include <stdexcept>

namespace chimera::runtime {
namespace {

using at::Tensor;

constexpr double kNormEpsilon = 1e-5;

// Dropout in one layer, keyed by what it is for and not by where it runs.
class Dropout {
public:
  /// `samples` is how many the micro-batch, or the part of one, has.
  Dropout(double probability, uint64_t seed, uint32_t layer,
          const std::optional<MicroBatch> &microBatch, int64_t samples)
      : probability(microBatch ? probability : 0), seed(seed), layer(layer),
        microBatch(microBatch.value_or(MicroBatch{})), samples(samples) {}

  bool acts() const { return probability > 0; }

  Tensor operator()(const Tensor &x, DropoutSite site) const {
    if (!acts())
      return x;
    const uint64_t first =
        (microBatch.index * microBatch.parts + microBatch.part) *
        static_cast<uint64_t>(samples);
    Tensor kept = at::empty(x.sizes(), at::kBool);
    keepElements(1 - probability,
                 mix({seed, kDropout, layer, site, microBatch.step}), first,
                 samples, x.numel() / samples, kept.data_ptr<bool>());
    // In this order autograd keeps the mask and nothing else.
    return x.mul(kept).mul_(1 / (1 - probability));
  }

private:
  double probability;
  uint64_t seed;
  uint32_t layer;
  MicroBatch microBatch;
  int64_t samples;
};

// The operations that have parameters; each takes its first one's number, and
// that of a norm also the number of the linear layer's weight.
class Parameters {
public:
  Parameters(const std::vector<Tensor> &all, std::vector<ParameterUse> *uses)
      : all(all), uses(uses) {}

  Tensor embed(const Tensor &tokens, size_t p) const {
    Tensor sum = at::embedding(all[p], tokens).add_(all[p + 1]);
    record({ParameterUse::Kind::Embedding, p, p, /*hasBias=*/false, tokens,
            /*mean=*/{}, /*reciprocalDeviation=*/{}, edge(sum),
            /*outputGradient=*/{}});
    return sum;
  }

  Tensor linear(const Tensor &x, size_t p) const {
    Tensor flat = x.view({-1, x.size(-1)});
    Tensor y = at::addmm(all[p + 1], flat, all[p].t());
    record({ParameterUse::Kind::Linear, p, p, /*hasBias=*/true, flat.detach(),
            /*mean=*/{}, /*reciprocalDeviation=*/{}, edge(y),
            /*outputGradient=*/{}});
    return y.view({x.size(0), x.size(1), -1});
  }

  Tensor normedLinear(const Tensor &x, size_t p, size_t w, bool hasBias) const {
    auto [normed, mean, reciprocalDeviation] = at::native_layer_norm(
        x, {x.size(-1)}, all[p], all[p + 1], kNormEpsilon);
    Tensor flat = normed.view({-1, x.size(-1)});
    Tensor weight = all[w].t();
    Tensor y = hasBias ? at::addmm(all[w + 1], flat, weight) : flat.mm(weight);
    record({ParameterUse::Kind::NormedLinear, p, w, hasBias, x.detach(),
            mean.detach(), reciprocalDeviation.detach(), edge(y),
            /*outputGradient=*/{}});
    return y.view({x.size(0), x.size(1), -1});
  }

private:
  // Taken before anything is computed in place on `result`, which moves it on
  // in the graph.
  torch::autograd::Edge edge(const Tensor &result) const {
    return uses ? torch::autograd::impl::gradient_edge(result)
                : torch::autograd::Edge();
  }
  void record(ParameterUse &&use) const {
    if (uses)
      uses->push_back(std::move(use));
  }

  const std::vector<Tensor> &all;
  std::vector<ParameterUse> *uses;
};

// Causal self-attention between its two linear layers.
Tensor attend(const Tensor &projected, int64_t heads, const Dropout &dropout) {
  const int64_t b = projected.size(0), t = projected.size(1);
  const int64_t c = projected.size(2) / 3, width = c / heads;
  if (!dropout.acts()) {
    // Named rather than chosen by scaled_dot_product_attention, so that what
    // it keeps is known.
    std::vector<Tensor> parts = projected.split(c, -1);
    for (Tensor &part : parts)
      part = part.view({b, t, heads, width}).transpose(1, 2);
    Tensor mixed = std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(
        parts[0], parts[1], parts[2], /*dropout_p=*/0, /*is_causal=*/true));
    return mixed.transpose(1, 2).reshape({b, t, c});
  }
  // The fused kernel has no dropout that we could key. One copy makes batched
  // matrices of queries, keys and values.
  std::vector<Tensor> parts = projected.view({b, t, 3, heads, width})
                                  .permute({2, 0, 3, 1, 4})
                                  .reshape({3, b * heads, t, width})
                                  .unbind(0);
  Tensor future = at::full({t, t}, -std::numeric_limits<double>::infinity(),
                           projected.options().requires_grad(false))
                      .triu_(1);
  Tensor scores = at::baddbmm(future, parts[0], parts[1].transpose(1, 2), 1,
                              1 / std::sqrt(static_cast<double>(width)));
  Tensor probabilities = dropout(scores.softmax(-1), kAttention);
  return probabilities.bmm(parts[2])
      .view({b, heads, t, width})
      .transpose(1, 2)
      .reshape({b, t, c});
}

Tensor block(const Tensor &x, const Parameters &parameters, size_t p,
             int64_t heads, const Dropout &dropout) {
  Tensor mixed = attend(parameters.normedLinear(x, p, p + 2, /*hasBias=*/true),
                        heads, dropout);
  // The sums reuse the memory of linear layers' outputs, which nobody keeps.
  Tensor y =
      dropout(parameters.linear(mixed, p + 4), kAttentionResidual).add_(x);
  Tensor hidden = at::gelu(
      parameters.normedLinear(y, p + 6, p + 8, /*hasBias=*/true), "tanh");
  return dropout(parameters.linear(hidden, p + 10), kMlpResidual).add_(y);
}

Tensor loss(const Tensor &x, const Tensor &labels, const Parameters &parameters,
            size_t p, size_t w) {
  Tensor logits = parameters.normedLinear(x, p, w, /*hasBias=*/false);
  return at::cross_entropy_loss(logits.view({-1, logits.size(-1)}),
                                labels.view({-1}));
}

} // namespace

Gpt2::Gpt2(const program::ProgramT &program, uint32_t first, uint32_t count)
    : type(program.data_type), seed(program.seed), first(first), count(count) {
  if (!program.model)
    throw std::invalid_argument("expected a program with a model, got one of "
                                "bare stages, which the synthetic and exact "
                                "stages can run");
  model = *program.model;
  if (std::string problem = program::checkModel(model); !problem.empty())
    throw std::invalid_argument("model: " + problem);
  const uint64_t layers = program::layerCount(model);
  if (count == 0 || uint64_t{first} + count > layers)
    throw std::invalid_argument(
        "expected a range of the model's " + std::to_string(layers) +
        " layers (embedding and head included), got " + std::to_string(count) +
        " from layer " + std::to_string(first));
  for (program::StageParameter &held :
       program::stageParameters(model, first, count)) {
    const int64_t size = held.parameter.elements();
    parameterSlots.push_back({std::move(held), weightElements});
    weightElements += size;
  }
}

std::vector<Tensor> Gpt2::bind(const std::byte *flat) const {
  std::vector<Tensor> tensors;
  tensors.reserve(parameterSlots.size());
  for (const Slot &slot : parameterSlots)
    tensors.push_back(at::from_blob(
        const_cast<std::byte *>(flat + slot.offset * program::bytesOf(type)),
        slot.parameter.shape, scalarType()));
  return tensors;
}

void Gpt2::initialize(std::byte *flat) const {
  std::vector<Tensor> tensors = bind(flat);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Slot &slot = parameterSlots[i];
    switch (slot.parameter.start) {
    case program::Parameter::Start::Zeros:
      tensors[i].zero_();
      break;
    case program::Parameter::Start::Ones:
      tensors[i].fill_(1);
      break;
    case program::Parameter::Start::Normal: {
      // Of the head nothing but its matrix is drawn.
      const bool asTokens = model.tied && slot.layer == model.layers + 1;
      at::Generator generator = at::detail::createCPUGenerator(
          mix({seed, kInitialWeights, asTokens ? 0 : slot.layer,
               asTokens ? 0 : slot.number}));
      tensors[i].copy_(at::empty(slot.parameter.shape, at::kDouble)
                           .normal_(0, slot.parameter.deviation, generator));
      break;
    }
    }
  }
}

Tensor Gpt2::run(Tensor x, const Tensor &labels,
                 const std::vector<Tensor> &parameters,
                 const std::optional<MicroBatch> &dropped,
                 std::vector<ParameterUse> *uses) const {
  const Parameters used(parameters, uses);
  size_t next = 0;
  for (uint32_t layer = first; layer != first + count; ++layer) {
    Dropout dropout(model.dropout, seed, layer, dropped, x.size(0));
    if (layer == 0)
      x = dropout(used.embed(x, next), kEmbedding);
    else if (layer == model.layers + 1)
      x = loss(x, labels, used, next,
               model.tied && hasEmbedding() ? 0 : next + 2);
    else
      x = block(x, used, next, model.heads, dropout);
    while (next < parameters.size() && parameterSlots[next].layer == layer)
      ++next;
  }
  return x;
}

} // namespace chimera::runtime
