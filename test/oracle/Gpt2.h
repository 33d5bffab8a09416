//===- Gpt2.h - GPT-2 as plain LibTorch code --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loss of a built-in GPT-2, written as in a textbook. Autograd
// differentiates it. It shares no code with the package of GPT-2 but the random
// numbers of dropout, so it is an independent answer for tests.
//
// Source: Radford et al., "Language Models are Unsupervised Multitask
// Learners", 2019, section 2.3.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_ORACLE_GPT2_H
#define CHIMERA_TEST_ORACLE_GPT2_H

#include "runtime/model/Stage.h"
#include "runtime/program/Gpt2Package.h"
#include "runtime/random/Random.h"

#include <ATen/core/Tensor.h>

#include <map>
#include <utility>

namespace chimera::runtime::test {

/// The dropouts of a layer, in the order of the forward. The embedding has one.
enum Gpt2Dropout : DropoutSite {
  kEmbedding = 0,
  kAttention = 0,
  kAttentionResidual = 1,
  kMlpResidual = 2
};

/// The parameters of a GPT-2 by layer and parameter number (Gpt2Package.h). A
/// tied head may be left out: it is parameter 0 of layer 0.
using Gpt2Parameters = std::map<std::pair<uint32_t, uint32_t>, at::Tensor>;

/// The mean cross-entropy of `labels` [samples, context], given `tokens`
/// [samples, context]. Everything before the logits is computed in the type of
/// the parameters, and the loss in `lossType`. Dropout has the masks of
/// `microBatch` in a run with this seed.
at::Tensor gpt2Loss(const program::Gpt2Sizes &sizes, uint64_t seed,
                    const Gpt2Parameters &parameters, const at::Tensor &tokens,
                    const at::Tensor &labels, MicroBatch microBatch,
                    at::ScalarType lossType);

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_ORACLE_GPT2_H
