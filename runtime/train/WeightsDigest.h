//===- WeightsDigest.h - A digest of the whole model's weights --*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A digest of the whole model's weights. Two runs that end with the same
// weights have the same digest, whatever their numbers of stages are. Each rank
// computes its part from its own weights, so no rank needs the whole model.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_WEIGHTSDIGEST_H
#define CHIMERA_RUNTIME_TRAIN_WEIGHTSDIGEST_H

#include "runtime/control/Control.h"
#include "runtime/interpreter/Interpreter.h"

namespace chimera::runtime {

/// The digest of all stages' parameters in stage order, with tied ones once. It
/// is the sum, modulo 2^64, of splitMix64(splitMix64(i) ^ word) over all words,
/// where i is the word's number from 0. A word usually has 4 bytes. It has one
/// byte if the size of some stage's parameters, or the size or the offset of
/// the tied parameters in the last stage, is not a multiple of 4 bytes.
uint64_t digestOfWeights(const program::ProgramT &program, ConstBytes whole);

/// The digest of the whole model at `root`, and 0 at the other ranks. Every
/// rank must call this. Throws WaitError if a wait for another rank exceeds
/// `timeout`.
uint64_t gatherDigest(const program::ProgramT &program, Control &control,
                      uint32_t root, const ReplicaBytes &replicas,
                      std::chrono::milliseconds timeout);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_WEIGHTSDIGEST_H
