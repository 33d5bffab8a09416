//===- TiedPrograms.h - Valid programs with tied parameters -----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The samples of SamplePrograms.h with parameters that the first and the last
// stage both have.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_PROGRAM_TIEDPROGRAMS_H
#define CHIMERA_TEST_RUNTIME_PROGRAM_TIEDPROGRAMS_H

#include "test/runtime/program/SamplePrograms.h"

namespace chimera::program {

/// The first `bytes` of the first stage's weights are the last ones of the last
/// stage's weights or, if `swapped`, the other way round. On each worker with
/// such a stage:
///
///   1. for each of these stages, a split of the gradient;
///   2. for each, an all-reduce of the rest, at the place of the whole sum;
///   3. one all-reduce of the tied pieces, into that of the first such stage;
///   4. if there is a second such stage, a copy to it;
///   5. for each, a join;
///   6. the updates.
///
/// Requires at least two workers, and fewer bytes than a stage has.
ProgramT sampleTied(const SampleOptions &options, uint64_t bytes,
                    bool swapped = false);

} // namespace chimera::program

#endif // CHIMERA_TEST_RUNTIME_PROGRAM_TIEDPROGRAMS_H
