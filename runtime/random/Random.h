//===- Random.h - Derivation of random numbers ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every random choice depends only on its purpose, and not on the worker or the
// time. mix (Mix.h) hashes the seed and numbers that describe the purpose:
//
//   initial weights   mix(seed, 1, layer, parameter's number in its layer),
//                     (a tied head uses those of the token embedding)
//   dropout           mix(seed, 2, layer, site, step), and the element
//   sample order      mix(seed, 3, epoch), the key of SampleOrder.h
//   masked tokens     mix(seed, 4, step, sample), and the token's place
//   a sentence pair   mix(seed, 5, step, sample), and which choice
//   first window      mix(seed, 6, epoch), for its place in a text
//
// A sample's number is (the micro-batch's number in all copies) * (samples in a
// micro-batch) + (its row in the micro-batch). So a sample has the same random
// numbers for every micro-batch size and every number of parts. Held-out
// samples have the step 2^64 - 1.
//
// Initial weights: the mix seeds an at::Generator (CPU), in Python
// torch.Generator().manual_seed(mix). Its Mersenne twister uses the lower 32
// bits. Weights are drawn in float64 by normal_(0, deviation) and rounded.
//
// Dropout: the mix is the key (Philox.h), and an element's number decides
// whether it is kept. That number is (its sample's number) * (elements in a
// sample) + (its number in the sample). Kept elements are scaled by
// 1 / (1 - p).
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_RANDOM_RANDOM_H
#define CHIMERA_RUNTIME_RANDOM_RANDOM_H

#include "runtime/random/Mix.h"

#include <cstdint>

namespace chimera::runtime {

/// The purpose of a random choice: the word after the seed in the formulas
/// above.
enum RandomUse : uint64_t {
  kInitialWeights = 1,
  kDropout = 2,
  kSampleOrder = 3,
  kMasking = 4,
  kSentencePair = 5,
  kFirstWindow = 6
};

/// The site of a dropout in its layer: the number of earlier sites in that
/// layer. The first dimension of the tensor that loses elements is the sample;
/// for an attention this tensor has the probabilities [samples, heads, tokens,
/// keys]. The elements of a sample are numbered in their order in the tensor.
using DropoutSite = uint64_t;

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_RANDOM_RANDOM_H
