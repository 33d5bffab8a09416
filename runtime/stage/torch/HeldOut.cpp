//===- HeldOut.cpp - A model's loss on held-out text ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/stage/torch/Gpt2.h"
#include "runtime/stage/torch/TextData.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <stdexcept>

namespace chimera::runtime {

double meanHeldOutLoss(
    const TextData &data, uint64_t windows, uint64_t samples,
    const std::function<WeighedLoss(std::span<const int64_t>,
                                    std::span<const int64_t>)> &lossOf) {
  if (windows == 0 || data.heldOutTokens() == 0)
    throw std::invalid_argument(
        "expected held-out text and at least one window of it, got " +
        std::to_string(data.heldOutTokens()) + " tokens and " +
        std::to_string(windows) + " windows");
  WeighedLoss all{0, 0};
  std::vector<int64_t> tokens, labels;
  for (uint64_t begin = 0; begin < windows; begin += samples) {
    const uint64_t count = std::min(samples, windows - begin);
    tokens.clear();
    labels.clear();
    for (uint64_t row = 0; row < count; ++row) {
      auto sample = data.heldOutSample(begin + row, windows);
      tokens.insert(tokens.end(), sample.tokens.begin(), sample.tokens.end());
      labels.insert(labels.end(), sample.labels.begin(), sample.labels.end());
    }
    const WeighedLoss loss = lossOf(tokens, labels);
    all.sum += loss.sum;
    all.weight += loss.weight;
  }
  if (!(all.weight > 0))
    throw std::invalid_argument(
        "expected held-out text with labels that count, got " +
        std::to_string(windows) + " windows without: give more of them");
  return all.sum / all.weight;
}

double heldOutLoss(const program::ProgramT &program, ConstBytes weights,
                   const TextData &data, uint64_t windows) {
  Gpt2 model(program, 0,
             program.model ? program::layerCount(*program.model) : 0);
  const StageWeights &held = model.weights();
  expectBytes("the whole model's weights", weights.size(),
              held.parameterBytes());
  at::NoGradGuard noGradient;
  Parameters parameters;
  for (const at::Tensor &parameter : held.bind(weights.data()))
    parameters.all.push_back(parameter.to(held.computedType()));
  auto asTensor = [&](std::span<const int64_t> numbers) {
    return at::tensor(at::ArrayRef<int64_t>(numbers.data(), numbers.size()))
        .view({-1, program.model->context});
  };
  return meanHeldOutLoss(
      data, windows, std::max(1u, program.micro_batch_size),
      [&](std::span<const int64_t> tokens, std::span<const int64_t> labels) {
        const double mean = model
                                .run(asTensor(tokens), asTensor(labels),
                                     parameters, /*dropped=*/std::nullopt)
                                .item<double>();
        const auto count = static_cast<double>(labels.size());
        return WeighedLoss{mean * count, count};
      });
}

} // namespace chimera::runtime
