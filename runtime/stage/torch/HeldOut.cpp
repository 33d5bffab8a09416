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

double heldOutLoss(const program::ProgramT &program, ConstBytes weights,
                   const TextData &data, uint64_t windows) {
  Gpt2 model(program, 0,
             program.model ? program::layerCount(*program.model) : 0);
  if (weights.size() != static_cast<size_t>(model.parameterBytes()))
    throw std::invalid_argument("expected the whole model's weights, " +
                                std::to_string(model.parameterBytes()) +
                                " bytes, got " +
                                std::to_string(weights.size()));
  if (windows == 0 || data.heldOutBytes() == 0)
    throw std::invalid_argument(
        "expected held-out text and at least one window of it, got " +
        std::to_string(data.heldOutBytes()) + " bytes and " +
        std::to_string(windows) + " windows");
  at::NoGradGuard noGradient;
  Parameters parameters;
  for (const at::Tensor &parameter : model.bind(weights.data()))
    parameters.all.push_back(parameter.to(model.activationType()));
  const int64_t context = program.model->context;
  const uint64_t rows = std::max(1u, program.micro_batch_size);
  double sum = 0;
  for (uint64_t begin = 0; begin < windows; begin += rows) {
    const auto count = static_cast<int64_t>(std::min(rows, windows - begin));
    at::Tensor text = at::empty({count, context + 1}, at::kLong);
    auto *target = text.data_ptr<int64_t>();
    for (int64_t row = 0; row < count; ++row) {
      auto window =
          data.heldOutWindow(begin + static_cast<uint64_t>(row), windows);
      target = std::copy(window.begin(), window.end(), target);
    }
    at::Tensor loss = model.run(text.narrow(1, 0, context).contiguous(),
                                text.narrow(1, 1, context).contiguous(),
                                parameters, /*dropped=*/std::nullopt);
    sum += loss.item<double>() * static_cast<double>(count);
  }
  return sum / static_cast<double>(windows);
}

} // namespace chimera::runtime
