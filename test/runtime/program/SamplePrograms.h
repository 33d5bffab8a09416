//===- SamplePrograms.h - Valid programs for tests --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs made without the compiler, for tests of the runtime. They are
// deliberately simple: every value has a buffer of its own, and all forwards
// run before all backwards. The builder visits the actions of all workers in
// one order. It adds the messages of an action when it visits the action.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_PROGRAM_SAMPLEPROGRAMS_H
#define CHIMERA_TEST_RUNTIME_PROGRAM_SAMPLEPROGRAMS_H

#include "runtime/program/Program.h"

#include <cstdint>

namespace chimera::program {

struct SampleOptions {
  /// The number of workers. Also the number of stages of each pipeline, if
  /// `stages` is 0.
  uint32_t workers = 4;
  uint32_t stages = 0;
  /// The number of micro-batches of one data-parallel copy. They are divided
  /// among the pipelines. If there are two, the first (down) has the first
  /// half, which is the larger one if the number is odd.
  uint32_t microBatches = 8;
  /// Whether there is an up pipeline. Its stage s is on worker D-1-s.
  bool bidirectional = false;
  /// If not 0, the second pipeline runs down like the first. Its stage s is on
  /// worker (s + secondPipelineShift) mod D, so messages go round in a ring. D
  /// is the number of workers. Requires bidirectional.
  uint32_t secondPipelineShift = 0;
  /// The number of further pipelines, which train on no micro-batch. Stage s of
  /// the k-th one (k from 1) is on worker (s + k) mod D.
  uint32_t idlePipelines = 0;
  /// Whether a backward is an input_gradient followed by a weight_gradient.
  bool splitBackward = false;
  /// Whether the first backward of a replica overwrites the replica's gradient
  /// buffer, as in the compiler's programs. Otherwise a zero_gradient sets the
  /// buffer to zero, and the first backward adds to it.
  bool firstBackwardOverwrites = false;
  /// Whether a forward covers two micro-batches of its pipeline. If their
  /// number is odd, the last forward covers one.
  bool doubledForwards = false;
  /// The number of parts of a micro-batch. A backward covers one part. Must
  /// divide the sizes in bytes below.
  uint32_t backwardParts = 1;
  /// Which backwards have a recompute directly before them: none, all, or all
  /// but the first backward of each forward.
  enum class Recompute { None, All, AllButFirst };
  Recompute recompute = Recompute::None;
  uint32_t dataParallel = 1;
  /// Whether updates clip gradients by the norm of the gradients of all stages.
  bool clips = false;
  /// The size in bytes of a value of one micro-batch. weightsBytes and
  /// optimizerBytes are for one replica instead. All must be multiples of 8.
  /// Stage s has 8*s more bytes of weights and 16*s more of optimizer state, so
  /// that stages cannot be confused.
  uint64_t tokenBytes = 32;
  uint64_t boundaryBytes = 64;
  uint64_t stashBytes = 512, weightStashBytes = 640;
  uint64_t weightsBytes = 128;
  uint64_t optimizerBytes = 256;
  /// Whether the program has a GPT-2 model with one layer on each stage. No
  /// field of the model has its default value. The model determines all sizes
  /// in bytes except stashBytes and weightStashBytes. A micro-batch has
  /// `backwardParts` samples. Requires at least three workers.
  bool ofModel = false;
  uint32_t vocabulary = 16; ///< of this model; TextData requires 256
};

/// One synchronous training step: loads, forwards, backwards, an all-reduce of
/// the gradients of each stage, an all-reduce of the losses (8 bytes per
/// micro-batch), squared norms and their all-reduce if the program clips,
/// optimizer steps. Requires at least one worker, micro-batch and
/// copy.
ProgramT samplePipeline(const SampleOptions &options = {});

} // namespace chimera::program

#endif // CHIMERA_TEST_RUNTIME_PROGRAM_SAMPLEPROGRAMS_H
