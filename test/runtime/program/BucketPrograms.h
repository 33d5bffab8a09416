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

/// Moves the cut between `bucket` and the next one by `bytes` (earlier, if
/// negative), in the gradients that a communicator sums: on every worker, in
/// every buffer that holds one of these two buckets. Stated peaks do not
/// change. Returns false and changes nothing if the communicator has no
/// gradients in so many buckets, if a bucket would become empty, or if one of
/// the buffers also holds another value.
bool recut(ProgramT &program, uint32_t communicator, uint32_t bucket,
           int64_t bytes);

} // namespace chimera::program

#endif // CHIMERA_TEST_RUNTIME_PROGRAM_BUCKETPROGRAMS_H
