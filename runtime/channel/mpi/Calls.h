//===- Calls.h - Checked MPI calls of any size ------------------*- C++ -*-===//
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

// All functions here require that the calling thread may call MPI (`enter` in
// CallLock.h).
namespace chimera::runtime::mpi {

/// Throws std::runtime_error with MPI's error text unless `code` is
/// MPI_SUCCESS.
void check(int code, const char *call);

/// Makes a communicator of all ranks. Its calls return errors instead of
/// aborting the process. This is a collective call.
MPI_Comm duplicateWorld();

/// When a send may complete. Standard: MPI may store a short message at the
/// receiver, so the send may complete before its receive is posted.
/// Synchronous: only after its receive has begun.
enum class SendMode { Standard, Synchronous };

/// Posts the send or receive of a message and appends its requests to
/// `requests`. A message of more than 1 GiB is split into pieces, in the same
/// way at both ends.
void send(ConstBytes bytes, uint32_t to, int tag, MPI_Comm communicator,
          std::vector<MPI_Request> &requests,
          SendMode mode = SendMode::Standard);
void receive(Bytes bytes, uint32_t from, int tag, MPI_Comm communicator,
             std::vector<MPI_Request> &requests);

/// Whether all `requests` are complete. If they are, clears the list.
bool test(std::vector<MPI_Request> &requests);

/// Ends requests after an error, when no thread waits for them any more.
/// Cancels them if `receives` is true. Waits at most 50 ms until they have
/// ended. If any request has not ended by then, it is leaked, and from then on
/// no block is freed (see Block.h).
void abandon(std::vector<MPI_Request> &requests, bool receives);

} // namespace chimera::runtime::mpi

#endif // CHIMERA_RUNTIME_CHANNEL_MPI_CALLS_H
