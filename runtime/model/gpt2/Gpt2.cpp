//===- Gpt2.cpp - GPT-2's layers on tensors -------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/gpt2/Gpt2.h"

#include "runtime/model/gpt2/Attention.h"
#include "runtime/program/Gpt2Package.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <stdexcept>

namespace chimera::runtime {
namespace {

using at::Tensor;

Tensor block(const Tensor &x, Parameters &parameters, size_t p, int64_t heads,
             const Dropout &dropout) {
  Tensor mixed = causalAttention(
      normedLinear(parameters, x, p, p + 2, /*hasBias=*/true), heads, dropout);
  // The residual sums are computed in place, in the outputs of linear layers.
  // Autograd does not need these outputs.
  Tensor y =
      dropout(linear(parameters, mixed, p + 4), kAttentionResidual).add_(x);
  Tensor hidden = at::gelu(
      normedLinear(parameters, y, p + 6, p + 8, /*hasBias=*/true), "tanh");
  return dropout(linear(parameters, hidden, p + 10), kMlpResidual).add_(y);
}

Tensor loss(const Tensor &x, const Tensor &labels, Parameters &parameters,
            size_t p, size_t w, at::ScalarType type) {
  Tensor logits = normedLinear(parameters, x, p, w, /*hasBias=*/false);
  if (!labels.defined())
    return logits;
  return at::cross_entropy_loss(logits.view({-1, logits.size(-1)}).to(type),
                                labels.view({-1}));
}

/// The program's model. Throws std::invalid_argument if the program has another
/// model than a built-in GPT-2, or none.
const program::ModelT &gpt2Of(const program::ProgramT &program) {
  if (program.model && program.model->architecture == program::kGpt2)
    return *program.model;
  throw std::invalid_argument("expected a program with the built-in GPT-2, got "
                              "one with an exported model or bare stages");
}

} // namespace

Gpt2::Gpt2(const program::ProgramT &program, uint32_t first, uint32_t count,
           const DevicePlacement &placement)
    : model(gpt2Of(program)), held(program, first, count, placement),
      seed(program.seed), first(first), count(count), placement(placement) {}

Tensor Gpt2::run(Tensor x, const Tensor &labels, Parameters &parameters,
                 const std::optional<MicroBatch> &dropped) const {
  const std::vector<StageWeights::Slot> &slots = held.slots();
  size_t next = 0;
  for (uint32_t layer = first; layer != first + count; ++layer) {
    Dropout dropout(model.dropout, seed, layer, dropped, placement.kernels);
    if (layer == 0)
      x = dropout(embed(parameters, x, next), kEmbedding);
    else if (layer == model.layers + 1)
      x = loss(x, labels, parameters, next,
               model.tied && hasEmbedding() ? 0 : next + 2, lossType());
    else
      x = block(x, parameters, next, model.heads, dropout);
    while (next < slots.size() && slots[next].layer == layer)
      ++next;
  }
  return x;
}

} // namespace chimera::runtime
