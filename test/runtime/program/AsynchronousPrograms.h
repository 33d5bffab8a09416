//===- AsynchronousPrograms.h - Valid programs without a flush --*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PipeDream and PipeDream-2BW programs, made without the compiler for tests of
// the runtime. As in SamplePrograms.h, every value has its own buffer, with
// three exceptions: weights, gradient sums, and values that live past the end
// of a section (prologue, body or epilogue of the instructions).
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_PROGRAM_ASYNCHRONOUSPROGRAMS_H
#define CHIMERA_TEST_RUNTIME_PROGRAM_ASYNCHRONOUSPROGRAMS_H

#include "test/runtime/program/SamplePrograms.h"

namespace chimera::program {

/// One down pipeline of D workers, with stage s on worker s. A step has N
/// micro-batches. Stage s runs d = D-1-s forwards ahead of its backwards:
///   prologue   forwards 0 to d-1
///   body       for each j < N: forward j+d, then backward j
///   epilogue   for each j < N: forward j+d if j+d < N, then backward j
/// A stage updates its weights after each backward or at the end of the step.
/// Requires updates other than Flush and N >= D. Uses only the options workers,
/// microBatches, splitBackward, firstBackwardOverwrites, dataParallel and the
/// sizes in bytes.
ProgramT sampleAsynchronous(const SampleOptions &options, Updates updates);

} // namespace chimera::program

#endif // CHIMERA_TEST_RUNTIME_PROGRAM_ASYNCHRONOUSPROGRAMS_H
