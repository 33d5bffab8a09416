//===- Predictor.cpp - Next-token prediction ------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/Predictor.h"

#include "runtime/random/Mix.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

using namespace chimera;
using namespace chimera::runtime;

/// Draws a token: returns the first token whose cumulative probability exceeds
/// `place`, which is in [0, 1). If `temperature` is 0, returns the token with
/// the largest logit.
static size_t drawn(const std::vector<double> &logits, double temperature,
                    double place) {
  const auto largest = std::ranges::max_element(logits);
  if (temperature == 0)
    return static_cast<size_t>(largest - logits.begin());
  std::vector<double> upTo;
  double sum = 0;
  for (double logit : logits)
    upTo.push_back(sum += std::exp((logit - *largest) / temperature));
  // Rounding may make `place * sum` equal to `sum`. No cumulative sum exceeds
  // it in this case, so take the last token.
  const auto found = std::ranges::upper_bound(upTo, place * sum);
  return static_cast<size_t>(std::min(found, upTo.end() - 1) - upTo.begin());
}

void chimera::runtime::generate(Predictor &model, std::vector<int64_t> text,
                                uint64_t count, const SamplingOptions &sampling,
                                const std::function<void(int64_t)> &onToken) {
  const uint64_t vocabulary = model.vocabulary();
  for (int64_t token : text)
    if (static_cast<uint64_t>(token) >= vocabulary)
      throw std::runtime_error("expected tokens of the model's vocabulary of " +
                               std::to_string(vocabulary) + ", got " +
                               std::to_string(token));
  for (uint64_t n = 0; n < count; ++n) {
    const size_t seen = std::min<uint64_t>(text.size(), model.context());
    std::vector<double> logits = model.nextLogits(std::span(text).last(seen));
    logits.resize(std::min<uint64_t>(logits.size(), sampling.vocabularyLimit));
    // Refuse NaN. Accept minus infinity, since a model may exclude a token by
    // this logit.
    if (std::ranges::any_of(logits, [](double x) { return std::isnan(x); }) ||
        !std::isfinite(*std::ranges::max_element(logits)))
      throw std::runtime_error("the model's logits are not finite numbers: its "
                               "training may have diverged");
    // 53 random bits give a number in [0, 1).
    const double place =
        static_cast<double>(mix({sampling.seed, n}) >> 11) * 0x1p-53;
    text.push_back(
        static_cast<int64_t>(drawn(logits, sampling.temperature, place)));
    onToken(text.back());
  }
}
