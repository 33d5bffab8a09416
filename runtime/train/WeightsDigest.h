//===- WeightsDigest.h - A digest of the whole model's weights --*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two runs that end with the same weights have the same digest, however many
// stages a program has. Each rank makes its part of what it holds, so no rank
// needs the whole model.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_WEIGHTSDIGEST_H
#define CHIMERA_RUNTIME_TRAIN_WEIGHTSDIGEST_H

#include "runtime/control/Control.h"
#include "runtime/interpreter/Interpreter.h"

namespace chimera::runtime {

/// Of all stages' parameters in stage order, with tied ones once: the sum,
/// modulo 2^64, of splitMix64(splitMix64(i) ^ word) over the words, numbered
/// from 0. A word has 4 bytes, or one where the parameters of some stage, or
/// tied ones, have no whole number of such.
uint64_t digestOfWeights(const program::ProgramT &program, ConstBytes whole);

/// The same at `root`, and 0 elsewhere. Every rank calls it. Throws WaitError
/// where a wait for another rank exceeds `timeout`.
uint64_t gatherDigest(const program::ProgramT &program, Control &control,
                      uint32_t root, const Replicas &replicas,
                      std::chrono::milliseconds timeout);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_WEIGHTSDIGEST_H
