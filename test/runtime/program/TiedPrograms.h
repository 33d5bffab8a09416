//===- TiedPrograms.h - Valid programs with tied parameters -----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The samples of SamplePrograms.h with parameters that first and last stage
// both hold.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_PROGRAM_TIEDPROGRAMS_H
#define CHIMERA_TEST_RUNTIME_PROGRAM_TIEDPROGRAMS_H

#include "test/runtime/program/SamplePrograms.h"

namespace chimera::program {

/// The first `bytes` of the first stage's weights are the last ones of the last
/// stage's, or, `swapped`, the last ones are the first. On each worker with
/// such a stage:
///
///   split, for each of them; all-reduce of the rest, in the place of the whole
///   sum, for each; one all-reduce of what is tied, into the place of the
///   first; where there is a second, copy there; join, for each; the updates.
///
/// Requires at least two workers and less bytes than a stage has.
ProgramT sampleTied(const SampleOptions &options, uint64_t bytes,
                    bool swapped = false);

} // namespace chimera::program

#endif // CHIMERA_TEST_RUNTIME_PROGRAM_TIEDPROGRAMS_H
