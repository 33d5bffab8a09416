//===- AsynchronousPrograms.h - Valid programs without a flush --*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PipeDream and PipeDream-2BW programs, made without the compiler for tests of
// the runtime. As in SamplePrograms.h, every value has a buffer of its own,
// except weights, gradient sums and values that cross the end of a section.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_PROGRAM_ASYNCHRONOUSPROGRAMS_H
#define CHIMERA_TEST_RUNTIME_PROGRAM_ASYNCHRONOUSPROGRAMS_H

#include "test/runtime/program/SamplePrograms.h"

namespace chimera::program {

/// One down pipeline with stage s on worker s. At the start of a body, stage s
/// has run d = D-1-s more forwards than backwards. Prologue | body | epilogue
/// are
///   forwards 0..d-1 | for each j below N forward j+d, backward j | the rest.
/// A stage updates its weights after each backward or at the end of the step.
/// Requires updates other than Flush and at least as many micro-batches as
/// workers. Uses only the options workers, microBatches, splitBackward,
/// dataParallel and bytes.
ProgramT sampleAsynchronous(const SampleOptions &options, Updates updates);

} // namespace chimera::program

#endif // CHIMERA_TEST_RUNTIME_PROGRAM_ASYNCHRONOUSPROGRAMS_H
