//===- Gpt2.cpp - GPT-2's layers on tensors -------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What autograd keeps here and in ParameterNodes.cpp is what Layout.cpp counts,
// term by term; a test measures it. Change all together.
//
//===----------------------------------------------------------------------===//

#include "runtime/stage/torch/Gpt2.h"

#include "runtime/stage/torch/Attention.h"
#include "runtime/stage/torch/TensorOver.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>

#include <stdexcept>

namespace chimera::runtime {
namespace {

using at::Tensor;

Tensor block(const Tensor &x, Parameters &parameters, size_t p, int64_t heads,
             const Dropout &dropout) {
  Tensor mixed = attend(normedLinear(parameters, x, p, p + 2, /*hasBias=*/true),
                        heads, dropout);
  // The sums reuse the memory of linear layers' outputs, which nobody keeps.
  Tensor y =
      dropout(linear(parameters, mixed, p + 4), kAttentionResidual).add_(x);
  Tensor hidden = at::gelu(
      normedLinear(parameters, y, p + 6, p + 8, /*hasBias=*/true), "tanh");
  return dropout(linear(parameters, hidden, p + 10), kMlpResidual).add_(y);
}

Tensor loss(const Tensor &x, const Tensor &labels, Parameters &parameters,
            size_t p, size_t w, at::ScalarType type) {
  Tensor logits = normedLinear(parameters, x, p, w, /*hasBias=*/false);
  return at::cross_entropy_loss(logits.view({-1, logits.size(-1)}).to(type),
                                labels.view({-1}));
}

at::ScalarType scalarTypeOf(program::DataType type) {
  switch (type) {
  case program::DataType::Float32:
    return at::kFloat;
  case program::DataType::Float64:
    return at::kDouble;
  case program::DataType::BFloat16:
    return at::kBFloat16;
  }
  throw std::invalid_argument("expected a known data type");
}

} // namespace

Gpt2::Gpt2(const program::ProgramT &program, uint32_t first, uint32_t count,
           const Place &place)
    : types(program::typesOf(program)), seed(program.seed), first(first),
      count(count), place(place) {
  if (!program.model)
    throw std::invalid_argument("expected a program with a model, got one of "
                                "bare stages, which the synthetic and exact "
                                "stages can run");
  model = *program.model;
  if (std::string problem = program::checkModel(model); !problem.empty())
    throw std::invalid_argument("model: " + problem);
  if (std::string problem = program::checkTypes(types); !problem.empty())
    throw std::invalid_argument(problem);
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

at::ScalarType Gpt2::weightType() const { return scalarTypeOf(types.weights); }

at::ScalarType Gpt2::activationType() const {
  return scalarTypeOf(types.activations);
}

std::vector<Tensor> Gpt2::bind(const std::byte *parameters) const {
  return bindAs(parameters, types.weights);
}

std::vector<Tensor> Gpt2::bindComputed(const std::byte *weights) const {
  return types.haveCopy()
             ? bindAs(weights + parameterBytes(), types.activations)
             : bind(weights);
}

std::vector<Tensor> Gpt2::bindAs(const std::byte *flat,
                                 program::DataType type) const {
  std::vector<Tensor> tensors;
  tensors.reserve(parameterSlots.size());
  for (const Slot &slot : parameterSlots)
    tensors.push_back(tensorOver(flat + slot.offset * program::bytesOf(type),
                                 slot.parameter.shape, scalarTypeOf(type),
                                 place));
  return tensors;
}

void Gpt2::refreshCopy(std::byte *weights) const {
  if (!types.haveCopy())
    return;
  auto flat = [&](const std::byte *begin, at::ScalarType type) {
    return tensorOver(begin, {weightElements}, type, place);
  };
  flat(weights + parameterBytes(), activationType())
      .copy_(flat(weights, weightType()));
}

void Gpt2::initialize(std::byte *weights) const {
  std::vector<Tensor> tensors = bind(weights);
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
  refreshCopy(weights);
}

Tensor Gpt2::run(Tensor x, const Tensor &labels, Parameters &parameters,
                 const std::optional<MicroBatch> &dropped) const {
  size_t next = 0;
  for (uint32_t layer = first; layer != first + count; ++layer) {
    Dropout dropout(model.dropout, seed, layer, dropped, place.kernels);
    if (layer == 0)
      x = dropout(embed(parameters, x, next), kEmbedding);
    else if (layer == model.layers + 1)
      x = loss(x, labels, parameters, next,
               model.tied && hasEmbedding() ? 0 : next + 2, lossType());
    else
      x = block(x, parameters, next, model.heads, dropout);
    while (next < parameterSlots.size() && parameterSlots[next].layer == layer)
      ++next;
  }
  return x;
}

} // namespace chimera::runtime
