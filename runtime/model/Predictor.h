//===- Predictor.h - Next-token prediction ----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_PREDICTOR_H
#define CHIMERA_RUNTIME_MODEL_PREDICTOR_H

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace chimera::runtime {

/// A whole language model with its weights, on the host.
class Predictor {
public:
  virtual ~Predictor() = default;
  /// The maximum number of tokens in the model's input.
  virtual uint64_t context() const = 0;
  /// The number of tokens in the vocabulary.
  virtual uint64_t vocabulary() const = 0;
  /// The logits of the token after `tokens`, for the whole vocabulary. Requires
  /// at least one token and at most `context()`.
  virtual std::vector<double> nextLogits(std::span<const int64_t> tokens) = 0;
};

struct SamplingOptions {
  /// The logits are divided by this number before the softmax that gives the
  /// probabilities of the tokens. If the number is 0, the token with the
  /// largest logit is chosen.
  double temperature = 1;
  uint64_t seed = 0;
  /// Only tokens below this number are drawn.
  uint64_t vocabularyLimit = UINT64_MAX;
};

/// Continues `text` by `count` tokens and calls `onToken` with each of them.
/// Requires at least one token of text. The random number for token n depends
/// only on the seed and n. Throws std::runtime_error if the text has a token
/// outside the vocabulary, if a logit is NaN, or if the largest logit is
/// infinite.
void generate(Predictor &model, std::vector<int64_t> text, uint64_t count,
              const SamplingOptions &sampling,
              const std::function<void(int64_t)> &onToken);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_PREDICTOR_H
