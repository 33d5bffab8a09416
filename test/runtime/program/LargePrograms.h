//===- LargePrograms.h - Programs with two large counts ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs with two large counts, for example of pipelines and micro-batches.
// The size of a program is linear in its counts. If the cost of its proof were
// proportional to the product of the counts, the proof would take minutes or
// gigabytes.
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

/// A valid program of one worker, to which one group of posts is added. In this
/// group, the worker sends its loss to `peers` other workers, each time over
/// another communicator. Refused only because the worker does not state its
/// memory.
ProgramT largeGroup(uint32_t peers);

/// A ring of `workers` workers. Each waits for the previous one, so all workers
/// form one cycle of waits.
ProgramT longCycle(uint32_t workers);

/// The first half of the workers waits in one all-reduce for the second half.
/// Each worker of the second half first waits for a message that a worker of
/// the first half sends only after the all-reduce.
ProgramT manyWaiters(uint32_t workers);

/// Worker w waits in an all-reduce for workers w+1 and w+2 (modulo `workers`).
/// There are cycles of waits of many lengths, and the cycles share workers.
/// Requires at least three workers.
ProgramT crossedCycles(uint32_t workers);

/// Adds buffers to `worker` that span an arena of 2^64 - 1 bytes. Each overlaps
/// the next one by a byte. The sum of their sizes exceeds 2^64, so it overflows
/// to a small number.
void chainBuffersToTheEnd(WorkerT &worker);

} // namespace chimera::program

#endif // CHIMERA_TEST_RUNTIME_PROGRAM_LARGEPROGRAMS_H
