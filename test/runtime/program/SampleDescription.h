//===- SampleDescription.h - Samples without instructions -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_PROGRAM_SAMPLEDESCRIPTION_H
#define CHIMERA_TEST_RUNTIME_PROGRAM_SAMPLEDESCRIPTION_H

#include "test/runtime/program/BuiltGpt2.h"
#include "test/runtime/program/SamplePrograms.h"

namespace chimera::program {

/// The number of stages of each pipeline.
inline uint32_t stagesOf(const SampleOptions &options) {
  return options.stages ? options.stages : options.workers;
}

/// The sizes of the model of a sample with `options.ofModel`.
inline SmallGpt2 gpt2Of(const SampleOptions &options) {
  return {.layers = options.workers - 2,
          .heads = 2,
          .width = 8,
          .context = 4,
          .vocabulary = options.vocabulary,
          .dropout = 0.25};
}

/// A sample without instructions: its stages, pipelines, model and workers. If
/// `options.ofModel`, sets tokenBytes and boundaryBytes in `options` to the
/// sizes for this model.
ProgramT describeSample(SampleOptions &options);

} // namespace chimera::program

#endif // CHIMERA_TEST_RUNTIME_PROGRAM_SAMPLEDESCRIPTION_H
