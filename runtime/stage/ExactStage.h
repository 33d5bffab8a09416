//===- ExactStage.h - Stages in integer arithmetic --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Stages that prove a schedule by running it. Every word that an action writes
// is a 64-bit mix of the stage, the micro-batch (or its part), the step and
// every bit of the operands. Gradients are sums modulo 2^64. The final weights
// change, with near certainty, if an operand is wrong, a contribution is lost
// or added twice, or weights have the wrong version. They do not depend on the
// order of summation, the worker or the pipeline.
//
// Tied parameters are in the weights of the first and the last stage. Their
// words are numbered separately, since their gradients are summed separately.
// Both copies start equal. Their update depends on their own gradient and not
// on the stage, so they stay equal if the gradients of both stages are reduced
// together.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_EXACTSTAGE_H
#define CHIMERA_RUNTIME_STAGE_EXACTSTAGE_H

#include "runtime/stage/Stage.h"

namespace chimera::runtime {

/// Makes stage `stage` of any program; it is a StageFactory. Buffers may have
/// any size: if the size is not a multiple of 8 bytes, the last word is
/// shorter.
std::unique_ptr<Stage> makeExactStage(const program::ProgramT &program,
                                      uint32_t stage);

/// Tokens and labels that are mixes of kind, step, micro-batch and seed.
class SyntheticData final : public DataSource {
public:
  explicit SyntheticData(uint64_t seed) : seed(seed) {}
  void load(program::ValueKind kind, MicroBatch microBatch,
            Bytes output) override;

private:
  uint64_t seed;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_EXACTSTAGE_H
