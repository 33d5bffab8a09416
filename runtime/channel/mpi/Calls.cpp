//===- Calls.cpp - Checked MPI calls of any size --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/mpi/Calls.h"

#include "runtime/channel/mpi/Backoff.h"
#include "runtime/system/Chunks.h"
#include "runtime/system/Deadline.h"

using namespace chimera::runtime;

void mpi::check(int code, const char *call) {
  if (code == MPI_SUCCESS)
    return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw std::runtime_error(std::string(call) + ": " +
                           std::string(text, length));
}

MPI_Comm mpi::duplicateWorld() {
  MPI_Comm communicator;
  check(MPI_Comm_dup(MPI_COMM_WORLD, &communicator), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
  return communicator;
}

static constexpr uint64_t kChunk = uint64_t(1) << 30;

void mpi::send(ConstBytes bytes, uint32_t to, int tag, MPI_Comm communicator,
               std::vector<MPI_Request> &requests, SendMode mode) {
  const auto post = mode == SendMode::Standard ? MPI_Isend : MPI_Issend;
  forEachChunk(bytes.size(), kChunk, [&](uint64_t at, uint64_t size) {
    requests.push_back(MPI_REQUEST_NULL);
    check(post(bytes.data() + at, static_cast<int>(size), MPI_BYTE,
               static_cast<int>(to), tag, communicator, &requests.back()),
          mode == SendMode::Standard ? "MPI_Isend" : "MPI_Issend");
  });
}

void mpi::receive(Bytes bytes, uint32_t from, int tag, MPI_Comm communicator,
                  std::vector<MPI_Request> &requests) {
  forEachChunk(bytes.size(), kChunk, [&](uint64_t at, uint64_t size) {
    requests.push_back(MPI_REQUEST_NULL);
    check(MPI_Irecv(bytes.data() + at, static_cast<int>(size), MPI_BYTE,
                    static_cast<int>(from), tag, communicator,
                    &requests.back()),
          "MPI_Irecv");
  });
}

bool mpi::test(std::vector<MPI_Request> &requests) {
  if (requests.empty())
    return true;
  int flag = 0;
  check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &flag,
                    MPI_STATUSES_IGNORE),
        "MPI_Testall");
  if (flag)
    requests.clear();
  return flag;
}

/// A receive without a matching message ends as soon as it is cancelled. If a
/// part of its message has arrived, Open MPI cannot cancel the receive,
/// although the standard requires this. A wait for such a receive would last
/// until the sender sends the rest. MPI_Request_free would not help, because
/// MPI would continue to write into the memory.
void mpi::abandon(std::vector<MPI_Request> &requests, bool receives) {
  constexpr std::chrono::milliseconds kMoment(50);
  auto dropEnded = [&] {
    std::erase_if(requests, [](MPI_Request &request) {
      int hasEnded = request == MPI_REQUEST_NULL;
      if (!hasEnded)
        MPI_Test(&request, &hasEnded, MPI_STATUS_IGNORE);
      return hasEnded != 0;
    });
  };
  if (receives)
    for (MPI_Request &request : requests)
      if (request != MPI_REQUEST_NULL)
        MPI_Cancel(&request);
  dropEnded();
  // Wait for the requests, so that their blocks can be freed. If no block is
  // freed any more, the wait has no benefit.
  Backoff backoff;
  for (Deadline deadline(kMoment);
       !requests.empty() && !blocksAreNeverFreed() && !deadline.passed();) {
    backoff.pause();
    dropEnded();
  }
  if (!requests.empty())
    stopFreeingBlocks();
  requests.clear();
}
