//===- Gpt2Predictor.cpp - GPT-2's next-token prediction ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/stage/torch/Gpt2.h"
#include "runtime/stage/torch/TransformerStage.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

namespace chimera::runtime {
namespace {

class Gpt2Predictor : public Predictor {
public:
  Gpt2Predictor(const program::ProgramT &program, const InitialValues *values)
      : model(program, 0,
              program.model ? program::layerCount(*program.model) : 0),
        mostTokens(program.model->context), known(program.model->vocabulary),
        weights(static_cast<size_t>(model.weights().bytes())) {
    model.weights().initializeWeights(weights, values);
  }

  uint64_t context() const override { return mostTokens; }
  uint64_t vocabulary() const override { return known; }

  std::vector<double> nextLogits(std::span<const int64_t> tokens) override {
    at::NoGradGuard noGradient;
    Parameters parameters{
        .all = model.weights().computedTensorsOver(weights.data())};
    // The positions after the last token are ignored.
    std::vector<int64_t> row(mostTokens);
    std::ranges::copy(tokens, row.begin());
    const at::Tensor logits =
        model
            .run(at::tensor(row).view({1, -1}), /*labels=*/{}, parameters,
                 /*dropped=*/std::nullopt)
            .select(0, 0)
            .select(0, static_cast<int64_t>(tokens.size()) - 1)
            .to(at::kDouble)
            .contiguous();
    const auto *first = logits.const_data_ptr<double>();
    return {first, first + logits.numel()};
  }

private:
  Gpt2 model;
  uint64_t mostTokens, known;
  std::vector<std::byte> weights;
};

} // namespace

std::unique_ptr<Predictor> makeGpt2Predictor(const program::ProgramT &program,
                                             const InitialValues *values) {
  return std::make_unique<Gpt2Predictor>(program, values);
}

} // namespace chimera::runtime
