//===- Session.cpp - This process as a rank of an MPI job -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/transport/mpi/Session.h"

#include "runtime/transport/Cores.h"
#include "runtime/transport/Deadline.h"
#include "runtime/transport/mpi/Calls.h"
#include "runtime/transport/mpi/Pace.h"
#include "runtime/transport/mpi/Turns.h"

#include <algorithm>
#include <sys/prctl.h>

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

namespace {
constexpr uint64_t kPiece = uint64_t(1) << 30;

/// Calls `post(offset, bytes)` for each piece, once for an empty message.
template <typename Post> void inPieces(uint64_t bytes, Post post) {
  uint64_t at = 0;
  do {
    uint64_t size = std::min(kPiece, bytes - at);
    post(at, static_cast<int>(size));
    at += size;
  } while (at < bytes);
}
} // namespace

void mpi::send(ConstBytes bytes, uint32_t to, int tag, MPI_Comm communicator,
               std::vector<MPI_Request> &requests) {
  inPieces(bytes.size(), [&](uint64_t at, int size) {
    requests.push_back(MPI_REQUEST_NULL);
    check(MPI_Isend(bytes.data() + at, size, MPI_BYTE, static_cast<int>(to),
                    tag, communicator, &requests.back()),
          "MPI_Isend");
  });
}

void mpi::receive(Bytes bytes, uint32_t from, int tag, MPI_Comm communicator,
                  std::vector<MPI_Request> &requests) {
  inPieces(bytes.size(), [&](uint64_t at, int size) {
    requests.push_back(MPI_REQUEST_NULL);
    check(MPI_Irecv(bytes.data() + at, size, MPI_BYTE, static_cast<int>(from),
                    tag, communicator, &requests.back()),
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

/// A receive that no message has come for ends as soon as it is cancelled. One
/// whose message is here in part cannot be cancelled in Open MPI, whatever the
/// standard says, and a wait for it would last until its sender moves the rest.
/// MPI_Request_free would not help: MPI would go on writing.
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
  // Once blocks are kept there is nothing to be won by waiting.
  Pace pace;
  for (Deadline deadline(kMoment);
       !requests.empty() && !blocksAreKept() && !deadline.passed();) {
    pace.pause();
    dropEnded();
  }
  if (!requests.empty())
    keepBlocks();
  requests.clear();
}

MpiSession::MpiSession(MpiThreads threads) {
  int wanted = threads == MpiThreads::One      ? MPI_THREAD_FUNNELED
               : threads == MpiThreads::InTurn ? MPI_THREAD_SERIALIZED
                                               : MPI_THREAD_MULTIPLE;
  int provided = 0;
  mpi::check(MPI_Init_thread(nullptr, nullptr, wanted, &provided),
             "MPI_Init_thread");
  if (provided < MPI_THREAD_FUNNELED)
    throw std::runtime_error("expected an MPI that lets other threads of a "
                             "process run (MPI_THREAD_FUNNELED)");
  severalThreads =
      threads != MpiThreads::One && provided >= MPI_THREAD_SERIALIZED;
  mpi::takeTurns(severalThreads && provided < MPI_THREAD_MULTIPLE);
  int number = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &number);
  self = static_cast<uint32_t>(number);
  MPI_Comm_size(MPI_COMM_WORLD, &number);
  size = static_cast<uint32_t>(number);
  mpi::Pace::everyRankHasACore = hostRanks().size() <= findCores().host;
  // Short naps are asked for: without this the kernel may add 50 µs.
  prctl(PR_SET_TIMERSLACK, 1000);
}

MpiSession::~MpiSession() {
  // MPI_Finalize spins until all ranks are there; this does not.
  MPI_Request barrier;
  if (MPI_Ibarrier(MPI_COMM_WORLD, &barrier) == MPI_SUCCESS) {
    int flag = 0;
    mpi::Pace pace;
    while (MPI_Test(&barrier, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && !flag)
      pace.pause();
  }
  MPI_Finalize();
}

std::vector<uint32_t> MpiSession::hostRanks() const {
  auto turn = mpi::enter();
  MPI_Comm host;
  mpi::check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0,
                                 MPI_INFO_NULL, &host),
             "MPI_Comm_split_type");
  int onHost = 0;
  MPI_Comm_size(host, &onHost);
  std::vector<uint32_t> ranks(onHost);
  mpi::check(MPI_Allgather(&self, 1, MPI_UINT32_T, ranks.data(), 1,
                           MPI_UINT32_T, host),
             "MPI_Allgather");
  MPI_Comm_free(&host);
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}
