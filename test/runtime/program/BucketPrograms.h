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

/// The sample with each gradient in two buckets, those of stage 0 equal ones.
/// Requires that each worker has at most one replica of a stage.
ProgramT sampleInBuckets(const SampleOptions &options);

/// Cuts the gradients that a communicator sums `bytes` later (earlier, if
/// negative) between `bucket` and the next: on every worker, in every buffer in
/// which these two pieces are. Peaks stay as stated. False, and nothing
/// changed, where it sums none in so many buckets, where a bucket would have
/// nothing left, and where another value is in one of the buffers too.
bool recut(ProgramT &program, uint32_t communicator, uint32_t bucket,
           int64_t bytes);

} // namespace chimera::program

#endif // CHIMERA_TEST_RUNTIME_PROGRAM_BUCKETPROGRAMS_H
