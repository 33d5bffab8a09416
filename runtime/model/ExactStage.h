//===- ExactStage.h - Stages in integer arithmetic --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Stages that prove a schedule by running it. Every 64-bit word that an action
// computes is a hash (Mix.h) of the stage, the micro-batch (or its part), the
// step and every bit of the operands. Gradients are summed modulo 2^64. The
// final weights change, with near certainty, if an operand is wrong, if a
// contribution is lost or added twice, or if an action uses the wrong version
// of the weights. The final weights do not depend on the order of summation,
// the worker or the pipeline.
//
// The first and the last stage each have a copy of the tied parameters in their
// weights. Tied words are numbered separately from the other words, since their
// gradients are summed separately. Both copies start equal. The update of a
// copy depends on the gradient of the tied parameters and not on the stage. So
// the copies stay equal if the gradients of both stages are summed before the
// updates.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_EXACTSTAGE_H
#define CHIMERA_RUNTIME_MODEL_EXACTSTAGE_H

#include "runtime/model/Stage.h"

namespace chimera::runtime {

/// Makes stage number `stage` of any program. This function can be used as a
/// StageFactory. Buffers may have any size: if the size is not a multiple of 8
/// bytes, the last word is shorter.
std::unique_ptr<Stage> makeExactStage(const program::ProgramT &program,
                                      uint32_t stage);

/// A source of tokens and labels. Each 64-bit word is a hash of the seed, the
/// kind (tokens or labels), the step, the micro-batch and the word's position.
class SyntheticData final : public DataSource {
public:
  explicit SyntheticData(uint64_t seed) : seed(seed) {}
  void load(program::ValueKind kind, MicroBatch microBatch,
            Bytes output) override;

private:
  uint64_t seed;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_EXACTSTAGE_H
