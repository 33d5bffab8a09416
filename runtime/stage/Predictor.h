//===- Predictor.h - What a model says comes next ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_PREDICTOR_H
#define CHIMERA_RUNTIME_STAGE_PREDICTOR_H

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace chimera::runtime {

/// A whole language model with its weights, on the host.
class Predictor {
public:
  virtual ~Predictor() = default;
  /// The most tokens that it sees.
  virtual uint64_t context() const = 0;
  /// How many tokens it knows.
  virtual uint64_t vocabulary() const = 0;
  /// The logits of the token behind `tokens`, of which there are one or more
  /// and at most a context, all of its vocabulary.
  virtual std::vector<double> next(std::span<const int64_t> tokens) = 0;
};

struct Sampling {
  /// By which logits are divided before one is drawn by its probability; with 0
  /// the token with the largest is taken.
  double temperature = 1;
  uint64_t seed = 0;
  /// Tokens from this one on are not drawn.
  uint64_t bound = UINT64_MAX;
};

/// Continues `text`, one token or more, by `count` tokens and calls `onToken`
/// with each. Token n depends on the seed and n alone. Throws
/// std::runtime_error where the text has a token that the model does not know,
/// or its logits are no numbers.
void generate(Predictor &model, std::vector<int64_t> text, uint64_t count,
              const Sampling &sampling,
              const std::function<void(int64_t)> &onToken);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_PREDICTOR_H
