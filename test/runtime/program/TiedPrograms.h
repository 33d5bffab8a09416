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

/// Ties the first `bytes` bytes of the first stage's weights to the last
/// `bytes` bytes of the last stage's weights. If `swapped`, ties the last bytes
/// of the first stage to the first bytes of the last stage. A worker may have
/// replicas of these two stages. It runs, for their gradients:
///
///   1. for each such replica, a split of its gradient into the tied piece
///      and the rest;
///   2. for each, an all-reduce of the rest, in place of the all-reduce of the
///      whole gradient;
///   3. one all-reduce of all tied pieces; its result is a piece of the first
///      replica's sum;
///   4. copies of this result to the sums of its other replicas;
///   5. for each replica, a join of the two pieces of its sum;
///   6. the updates.
///
/// Requires at least two workers, and fewer bytes than a stage has.
ProgramT sampleTied(const SampleOptions &options, uint64_t bytes,
                    bool swapped = false);

} // namespace chimera::program

#endif // CHIMERA_TEST_RUNTIME_PROGRAM_TIEDPROGRAMS_H
