//===- SamplePrograms.h - Valid programs for tests --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs made without the compiler, for tests of the runtime. They are
// deliberately simple: every value has a buffer of its own, all forwards run
// before all backwards, and all messages come from one walk over the global
// order.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_PROGRAM_SAMPLEPROGRAMS_H
#define CHIMERA_TEST_RUNTIME_PROGRAM_SAMPLEPROGRAMS_H

#include "runtime/program/Program.h"

#include <cstdint>

namespace chimera::program {

struct SampleOptions {
  /// The number of workers, and of stages of each pipeline unless `stages` is
  /// set.
  uint32_t workers = 4;
  uint32_t stages = 0;
  /// The number of micro-batches of one copy. They are divided among the
  /// pipelines: the down pipeline has the first half (the larger one, if odd).
  uint32_t microBatches = 8;
  /// Whether there is an up pipeline, whose stage s is on worker D-1-s.
  bool bidirectional = false;
  /// If not 0, the second pipeline runs down, too: its stage s is on worker (s
  /// + turned) mod D, so that messages go round in a ring. Requires
  /// bidirectional.
  uint32_t turned = 0;
  /// The number of further pipelines, which train on no micro-batch. Stage s of
  /// the k-th one (k from 1) is on worker (s + k) mod D.
  uint32_t idlePipelines = 0;
  /// Whether a backward is an input_gradient followed by a weight_gradient.
  bool splitBackward = false;
  /// Whether a replica's first backward starts its gradient sum, as in the
  /// compiler's programs, instead of adding to a zero_gradient.
  bool beginsSums = false;
  /// Whether a forward covers two micro-batches of its pipeline. If one is left
  /// over, the last forward covers it alone.
  bool doubledForwards = false;
  /// The number of parts of a micro-batch; a backward covers one. Must divide
  /// the sizes below.
  uint32_t backwardParts = 1;
  /// Which backwards have a recompute directly before them: none, all, or all
  /// but the first backward of each forward.
  enum class Recompute { None, All, AllButFirst };
  Recompute recompute = Recompute::None;
  uint32_t dataParallel = 1;
  /// Bytes of one micro-batch's value or, for the last two, of one replica's.
  /// All must be multiples of 8. Stage s has 8*s more bytes of weights and 16*s
  /// more of optimizer state, so that stages cannot be confused.
  uint64_t tokenBytes = 32;
  uint64_t boundaryBytes = 64;
  uint64_t stashBytes = 512, weightStashBytes = 640;
  uint64_t weightsBytes = 128;
  uint64_t optimizerBytes = 256;
  /// Whether the program has a GPT-2 model with one layer on each stage, in
  /// which no field has its default value. Then sizes are the model's and not
  /// those above, except the stash's. A micro-batch has one sample for each
  /// part. Requires at least three workers.
  bool ofModel = false;
  uint32_t vocabulary = 16; ///< of that model; text needs 256
};

/// One synchronous training step: loads, forwards, backwards, an all-reduce for
/// every stage and one for the losses (8 bytes each), optimizer steps. Requires
/// at least one worker, micro-batch and copy.
ProgramT samplePipeline(const SampleOptions &options = {});

} // namespace chimera::program

#endif // CHIMERA_TEST_RUNTIME_PROGRAM_SAMPLEPROGRAMS_H
