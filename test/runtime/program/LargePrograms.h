//===- LargePrograms.h - Programs with large numbers ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs whose proof would take minutes or gigabytes if its cost were the
// product of two of their numbers. Their size is linear in the numbers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_PROGRAM_LARGEPROGRAMS_H
#define CHIMERA_TEST_RUNTIME_PROGRAM_LARGEPROGRAMS_H

#include "runtime/program/Program.h"

namespace chimera::program {

/// One worker with one stage of each of `pipelines` pipelines. The first
/// pipeline trains on all micro-batches. Valid.
ProgramT manyPipelines(uint32_t pipelines, uint32_t microBatches);

/// One stage on each of `workers` workers, each in a pipeline of its own. All
/// are members of one all-reduce. Valid.
ProgramT manyMembers(uint32_t workers);

/// The worker of a valid program sends its loss to `peers` others in one group
/// of posts, each on a communicator of its own. Refused only because it does
/// not state its memory.
ProgramT largeGroup(uint32_t peers);

/// A ring of `workers` workers, each of which waits for the previous one: a
/// single cycle with all of them.
ProgramT longCycle(uint32_t workers);

/// Many workers wait in one all-reduce for a worker that waits for one of them.
ProgramT manyWaiters(uint32_t workers);

/// Each of `workers` workers waits in an all-reduce for the next two workers in
/// a ring. There are cycles of many lengths, which share workers. Requires at
/// least three workers.
ProgramT crossedCycles(uint32_t workers);

/// Gives `worker` buffers that overlap their neighbours and span an arena of
/// almost 2^64 bytes. Adding up their ends without an overflow check gives a
/// small number.
void chainBuffersToTheEnd(WorkerT &worker);

} // namespace chimera::program

#endif // CHIMERA_TEST_RUNTIME_PROGRAM_LARGEPROGRAMS_H
