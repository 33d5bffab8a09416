//===- LargePrograms.h - Programs with large numbers ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs whose proof would take minutes or gigabytes if some part of it took
// the product of two of their numbers. Their size is linear in the numbers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_PROGRAM_LARGEPROGRAMS_H
#define CHIMERA_TEST_RUNTIME_PROGRAM_LARGEPROGRAMS_H

#include "runtime/program/Program.h"

namespace chimera::program {

/// One worker that holds one stage of so many pipelines, of which the first
/// trains on all micro-batches. Valid.
ProgramT manyPipelines(uint32_t pipelines, uint32_t microBatches);

/// One stage on so many workers, each in a pipeline of its own: all are members
/// of one all-reduce. Valid.
ProgramT manyMembers(uint32_t workers);

/// The worker of a valid program sends its loss to so many others in one group
/// of posts, each on a communicator of its own. Refused only for the memory
/// that it does not state.
ProgramT largeGroup(uint32_t peers);

/// A ring of so many workers each of which waits for the one before it: one
/// cycle of all of them.
ProgramT longCycle(uint32_t workers);

/// So many workers that wait in one all-reduce for a worker that waits for one
/// of them.
ProgramT manyWaiters(uint32_t workers);

/// So many workers each of which waits in an all-reduce for the two after it,
/// round: cycles of many lengths, which share their workers. Requires at least
/// three.
ProgramT crossedCycles(uint32_t workers);

/// Gives `worker` buffers that overlap their neighbours and span an arena of
/// almost 2^64 bytes: whoever adds up where they end gets a small number.
void chainBuffersToTheEnd(WorkerT &worker);

} // namespace chimera::program

#endif // CHIMERA_TEST_RUNTIME_PROGRAM_LARGEPROGRAMS_H
