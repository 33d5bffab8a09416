//===- ExactStage.h - Stages in integer arithmetic --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A proof by running: every word that an action writes is a 64-bit mix of the
// stage, the micro-batch (or its part), the step and every bit of its operands,
// and gradients are sums modulo 2^64. A wrong operand, a lost or doubled
// contribution, or weights of the wrong version change the final weights with
// all but certainty; the order of summation does not. Nothing depends on worker
// or pipeline.
//
// Tied parameters, in the weights of first and last stage, are a sequence of
// words of their own, since they are summed apart from the rest. They begin
// equal, and their update depends on their own gradient alone, not on the
// stage: they stay equal where the two stages' gradients are reduced as one.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_EXACTSTAGE_H
#define CHIMERA_RUNTIME_STAGE_EXACTSTAGE_H

#include "runtime/stage/Stage.h"

namespace chimera::runtime {

/// Stage `stage` of any program, a StageFactory. Buffers of any size do: bytes
/// after the last whole word count as a shorter one.
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
