//===- BucketPrograms.h - Gradients in buckets, for tests -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_PROGRAM_BUCKETPROGRAMS_H
#define CHIMERA_TEST_RUNTIME_PROGRAM_BUCKETPROGRAMS_H

#include "test/runtime/program/SamplePrograms.h"

namespace chimera::program {

/// The sample program (SamplePrograms.h) with each gradient cut into two
/// buckets. The two buckets of stage 0 have equal sizes. Requires that each
/// worker has at most one replica of a stage.
ProgramT sampleInBuckets(const SampleOptions &options);

/// Moves the boundary between buckets `bucket` and `bucket + 1` by `bytes`
/// (towards the beginning of the gradient if negative). Does so for the
/// gradients that `communicator` sums, on every worker, in every buffer of
/// these two buckets. Does not change the peaks that the program states.
/// Returns false, and changes nothing, if the communicator sums no bucket
/// `bucket + 1`, if a bucket would become empty, or if one of the buffers also
/// has another value.
bool moveBucketBoundary(ProgramT &program, uint32_t communicator,
                        uint32_t bucket, int64_t bytes);

} // namespace chimera::program

#endif // CHIMERA_TEST_RUNTIME_PROGRAM_BUCKETPROGRAMS_H
