//===- SampleDescription.h - Samples but for instructions -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_PROGRAM_SAMPLEDESCRIPTION_H
#define CHIMERA_TEST_RUNTIME_PROGRAM_SAMPLEDESCRIPTION_H

#include "test/runtime/program/SamplePrograms.h"

namespace chimera::program {

/// Of each pipeline.
inline uint32_t stagesOf(const SampleOptions &options) {
  return options.stages ? options.stages : options.workers;
}

/// A sample without what its workers do: its stages, pipelines and model, and
/// as many workers without instructions. If it is of a model, it sets the sizes
/// in the options to the model's.
ProgramT describeSample(SampleOptions &options);

} // namespace chimera::program

#endif // CHIMERA_TEST_RUNTIME_PROGRAM_SAMPLEDESCRIPTION_H
