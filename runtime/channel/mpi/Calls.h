//===- Calls.h - MPI calls with errors and large sizes ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_MPI_CALLS_H
#define CHIMERA_RUNTIME_CHANNEL_MPI_CALLS_H

#include "runtime/channel/ReduceGroup.h"
#include "runtime/device/Block.h"

#include <mpi.h>

// All are called in turn, see Turns.h.
namespace chimera::runtime::mpi {

/// Throws std::runtime_error with MPI's own words unless `code` is success.
void check(int code, const char *call);

/// A communicator over all ranks, which calls return errors of. Collective.
MPI_Comm duplicateWorld();

/// Posts the sends or receives of `bytes` and appends them to `requests`. A
/// message of more than 1 GiB goes in pieces, which its two ends cut alike.
void send(ConstBytes bytes, uint32_t to, int tag, MPI_Comm communicator,
          std::vector<MPI_Request> &requests);
void receive(Bytes bytes, uint32_t from, int tag, MPI_Comm communicator,
             std::vector<MPI_Request> &requests);

/// Whether all `requests` are complete; if so, clears them.
bool test(std::vector<MPI_Request> &requests);

/// Ends requests that nobody waits for any more, after an error: cancels
/// receives and gives all a moment. What has not ended by then is leaked, and
/// its memory kept (see Block.h).
void abandon(std::vector<MPI_Request> &requests, bool receives);

} // namespace chimera::runtime::mpi

#endif // CHIMERA_RUNTIME_CHANNEL_MPI_CALLS_H
