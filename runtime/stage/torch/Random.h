//===- Random.h - Where random numbers come from ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every random choice is a function of what it is for, never of where or when
// it is made:
//
//   initial weights   mix(seed, 1, layer, parameter's number in its layer),
//                     those of the token embedding for a head tied to it
//   dropout           mix(seed, 2, layer, site, step), and the element
//   a text window     mix(seed, 3, step, sample)
//   masked tokens     mix(seed, 4, step, sample), and the token's place
//   a sentence pair   mix(seed, 5, step, sample), and which choice
//
// A sample's number is that of its micro-batch in all copies, times the samples
// of one, plus its row: how many samples a micro-batch or a part of one has
// changes nothing of theirs. Held-out samples have the step 2^64 - 1.
//
// Weights seed at::Generator (CPU) with the mix: in Python,
// torch.Generator().manual_seed(mix). (That Mersenne twister uses the lower 32
// bits.) They are drawn in float64 by normal_(0, deviation) and rounded.
// Dropout keeps elements by their numbers, with the mix as key (Philox.h), and
// scales by 1 / (1 - p). An element's number is its sample's, times the
// elements of a sample, plus the element's own in its sample.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_RANDOM_H
#define CHIMERA_RUNTIME_STAGE_TORCH_RANDOM_H

#include "runtime/stage/Mix.h"

#include <cstdint>

namespace chimera::runtime {

/// The first word after the seed.
enum RandomUse : uint64_t {
  kInitialWeights = 1,
  kDropout = 2,
  kTextWindow = 3,
  kMasking = 4,
  kSentencePair = 5
};

/// Where in a layer dropout acts: how many other places in the layer are before
/// that one. Shapes: [B, T, C] but for the attention's probabilities, which are
/// [B * heads, T, T]. A sample's elements have their numbers in that order.
enum DropoutSite : uint64_t {
  kEmbedding = 0,
  kAttention = 0,
  kAttentionResidual = 1,
  kMlpResidual = 2
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_RANDOM_H
